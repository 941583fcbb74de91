"""Chosen examples of a run: a source for lanes that are to see some examples only."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence

from cbench_server.runs.run_rows import RunRows
from cbench_server.runs.store import SpooledExample

_AT_ONCE = 32


class Chosen:
    """Reads the examples that some system is to get, which are all in the store."""

    def __init__(
        self,
        store: RunRows,
        run_id: str,
        ordinals: Mapping[str, Sequence[int]],
        *,
        is_memory: bool,
    ) -> None:
        """`ordinals` says which examples each system gets.

        Conversations (`is_memory`) are read whole: their first question has their turns.
        """
        self._store = store
        self._run_id = run_id
        self._ordinals = {system: frozenset(chosen) for system, chosen in ordinals.items()}
        self._all = sorted(set[int]().union(*self._ordinals.values()))
        self._is_memory = is_memory

    async def page(self, start: int, limit: int) -> list[SpooledExample]:
        """Return the next examples, from ordinal `start` on; empty at the end."""
        if self._is_memory:
            return await self._store.read_examples(self._run_id, start, limit)
        first = bisect_left(self._all, start)
        found: list[SpooledExample] = []
        for ordinal in self._all[first : first + min(limit, _AT_ONCE)]:
            found += await self._store.read_examples(self._run_id, ordinal, 1)
        return found

    async def completed(self, system: str, start: int, stop: int) -> set[tuple[int, int]]:
        """Return the rows that need not be made: those there are, and those not chosen."""
        done = await self._store.completed(self._run_id, system, start, stop)
        chosen = self._ordinals[system]
        wanted = range(start, stop) if self._is_memory else self._all
        return done | {
            (ordinal, 0) for ordinal in wanted if start <= ordinal < stop and ordinal not in chosen
        }
