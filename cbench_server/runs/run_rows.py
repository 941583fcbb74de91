"""The rows of a run at work, as its arms, notes and costs read them: stored, or in memory."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Protocol

from cbench_server.events import StoredEvent
from cbench_server.results import EvalRow
from cbench_server.runs.store import ALL_ROWS, RowKey, RowPage, RowQuery, SpooledExample
from cbench_server.spec import Run


class RunRows(Protocol):
    """The part of a RunStore that knows one run; local_store.py has it without a store."""

    async def get_run(self, run_id: str) -> Run:
        """See RunStore."""
        ...

    async def append(
        self,
        run_id: str,
        events: Sequence[StoredEvent],
        *,
        update: Mapping[str, Any] | None = None,
    ) -> int:
        """See RunStore."""
        ...

    async def read_examples(self, run_id: str, start: int, limit: int) -> list[SpooledExample]:
        """See RunStore."""
        ...

    async def spooled(self, run_id: str) -> tuple[int, bool]:
        """See RunStore."""
        ...

    async def completed(
        self, run_id: str, system: str, start: int, stop: int
    ) -> set[tuple[int, int]]:
        """See RunStore."""
        ...

    async def read_rows(
        self, run_id: str, query: RowQuery = ALL_ROWS, token: str | None = None
    ) -> RowPage:
        """See RunStore."""
        ...

    async def read_rows_at(self, keys: Sequence[RowKey]) -> list[EvalRow | None]:
        """See RunStore."""
        ...

    def iterate_rows(self, run_id: str, system: str) -> AsyncIterator[list[EvalRow]]:
        """See RunStore."""
        ...
