"""Rows of a local evaluation, in memory: what arms, notes and costs read in place of a store."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cbench_server.events import RowScored, StoredEvent
from cbench_server.results import EvalRow
from cbench_server.runs.store import ALL_ROWS, RowKey, RowPage, RowQuery, SpooledExample
from cbench_server.spec import Run, SystemProgress


class LocalStore:
    """Keeps one run. See RunRows for its methods."""

    def __init__(self, run: Run, examples: Sequence[SpooledExample]) -> None:
        self._run = run
        self._examples = examples
        self._rows: dict[str, dict[tuple[int, int], EvalRow]] = {}

    def add(self, rows: Iterable[EvalRow]) -> None:
        """Take rows; those of a system are read in their order, whenever they came."""
        for row in rows:
            self._rows.setdefault(row.system, {})[row.ordinal, row.repeat] = row

    def rows_of(self, system: str) -> list[EvalRow]:
        """Return the rows of a system by ordinal and repeat."""
        return [row for _, row in sorted(self._rows.get(system, {}).items())]

    @property
    def run(self) -> Run:
        """The run, with what is counted of its rows."""
        progress = {
            name: SystemProgress(len(rows), sum(row.failure is not None for row in rows.values()))
            for name in self._run.systems
            for rows in [self._rows.get(name, {})]
        }
        return replace(
            self._run, progress=progress, total_rows=self._run.rows_of(len(self._examples))
        )

    async def get_run(self, run_id: str) -> Run:
        return self.run

    async def append(
        self,
        run_id: str,
        events: Sequence[StoredEvent],
        *,
        update: Mapping[str, Any] | None = None,
    ) -> int:
        self.add(event.row for event in events if isinstance(event, RowScored))
        self._run = replace(self._run, **(update or {}))
        return 0

    async def read_examples(self, run_id: str, start: int, limit: int) -> list[SpooledExample]:
        return [*self._examples[start : start + limit]]

    async def spooled(self, run_id: str) -> tuple[int, bool]:
        return len(self._examples), True

    async def completed(
        self, run_id: str, system: str, start: int, stop: int
    ) -> set[tuple[int, int]]:
        return {key for key in self._rows.get(system, {}) if start <= key[0] < stop}

    async def read_rows(
        self, run_id: str, query: RowQuery = ALL_ROWS, token: str | None = None
    ) -> RowPage:
        names = (query.system,) if query.system else self._run.systems
        rows = [row for name in names for row in self.rows_of(name)]
        originals = [self._examples[row.ordinal].example for row in rows]
        return RowPage(rows, None, originals if query.original else None)

    async def read_rows_at(self, keys: Sequence[RowKey]) -> list[EvalRow | None]:
        return [self._rows.get(key.system, {}).get((key.ordinal, key.repeat)) for key in keys]

    async def iterate_rows(self, run_id: str, system: str) -> AsyncIterator[list[EvalRow]]:
        if rows := self.rows_of(system):
            yield rows


class LocalExamples:
    """Where lanes of a local evaluation read its examples, and which rows there are already."""

    def __init__(self, store: LocalStore, run_id: str) -> None:
        self._store = store
        self._run_id = run_id

    async def page(self, start: int, limit: int) -> list[SpooledExample]:
        return await self._store.read_examples(self._run_id, start, limit)

    async def completed(self, system: str, start: int, stop: int) -> set[tuple[int, int]]:
        return await self._store.completed(self._run_id, system, start, stop)
