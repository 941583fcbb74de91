"""The rows that conclusions are drawn from, each system's read once for all of them."""

from cbench_server.results import EvalRow
from cbench_server.runs.run_rows import RunRows


class ConcludedRows:
    """Reads the rows of a run, system by system, and keeps them until all is concluded.

    Whoever asks bounds how many there are.
    """

    def __init__(self, store: RunRows, run_id: str) -> None:
        self._store = store
        self._run_id = run_id
        self._known: dict[str, list[EvalRow]] = {}

    async def of(self, system: str) -> list[EvalRow]:
        """Return all rows of a system."""
        if system not in self._known:
            pages = self._store.iterate_rows(self._run_id, system)
            self._known[system] = [row async for page in pages for row in page]
        return self._known[system]
