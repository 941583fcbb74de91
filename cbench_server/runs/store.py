"""The store of runs, as the orchestrator sees it. storage/sqlite.py is the one we ship."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from cbench_server.events import Stored, StoredEvent
from cbench_server.results import EvalRow
from cbench_server.spec import Run, RunState


# Not frozen: passing a frozen class's guard seven times takes longer than all the rest.
@dataclass(slots=True)
class SpooledExample:
    """One example of a run, as every system, rescore and diff will read it."""

    ordinal: int
    """Position in the run."""
    dataset: str
    """The tag its rows carry."""
    index: int
    """Position in its dataset."""
    example: dict[str, Any]
    digest: str
    """SHA-256 of the example's canonical form, in hex."""
    field_tokens: dict[str, int] = field(default_factory=dict)
    """Tokens of each text field of the whole example."""
    size: int = 0
    """Bytes it holds in memory, roughly; 0 where it was not measured."""
    packed: bytes = field(default=b"", repr=False, compare=False)
    """The example as a store keeps it, from `RunStore.pack_examples` until it is stored."""


class RowKey(NamedTuple):
    """Names one stored row."""

    run_id: str
    ordinal: int
    system: str
    repeat: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RowQuery:
    """Which rows of a run to read, what of each, and how much at once."""

    system: str = ""
    """Only of this system; empty for all."""
    failed_only: bool = False
    processed: bool = False
    """With what the systems returned."""
    original: bool = False
    """With the originals of the rows."""
    packed: bool = False
    """With what the systems returned as it is stored, too, for `RowScored.packed`."""
    limit: int = 500
    max_bytes: int = 8_000_000


ALL_ROWS = RowQuery()


@dataclass(frozen=True, slots=True)
class RowPage:
    """Some rows of a run and where the next ones start; None at the end."""

    rows: list[EvalRow]
    next_token: str | None
    originals: list[dict[str, Any]] | None = None
    """The originals of the rows, where they were asked for."""
    packed: list[bytes | None] | None = None
    """What the systems returned as it is stored, where that was asked for."""


class RunStore(Protocol):
    """Keeps runs, their examples and their events.

    Methods may be awaited from one event loop only; they do their work on
    other threads. Once `append` has returned, its events are on disk.
    """

    async def create_run(self, run: Run) -> Run:
        """Store a new run with its RunAccepted event as seq 1.

        Where a run with the same non-empty `request_id` exists, that one is
        returned if its spec is equal, else AlreadyExists is raised.
        """
        ...

    async def find_request(self, request_id: str) -> Run | None:
        """Return the run that a request started, None if none did."""
        ...

    async def get_run(self, run_id: str) -> Run:
        """Return a run with its current progress, or raise UnknownRun."""
        ...

    async def list_runs(
        self,
        *,
        limit: int = 50,
        before: str | None = None,
        states: Collection[RunState] = (),
        labels: Mapping[str, str] | None = None,
    ) -> list[Run]:
        """Return runs, newest first; `before` is the last run_id of the page before."""
        ...

    async def append(
        self, run_id: str, events: Sequence[StoredEvent], *, update: Mapping[str, Any] | None = None
    ) -> int:
        """Append events, and set attributes of the run, in one transaction; return the last seq.

        Concurrent calls are committed together. A row whose key
        (system, ordinal, repeat) is stored already is dropped, so a row is
        never stored twice; progress counters follow what was really stored.
        `update` names attributes of Run, such as state or config.
        """
        ...

    async def read_events(
        self,
        run_id: str,
        after_seq: int,
        *,
        limit: int = 1000,
        max_bytes: int = 1_000_000,
        rows: bool = True,
        processed: bool = False,
    ) -> list[Stored]:
        """Return stored events after `after_seq`, in order, at least one if there is one.

        With `rows=False` RowScored events are left out; without `processed`
        rows need not carry their processed output. Each event's checksum is
        verified; StoreCorrupt names the run and seq that fail.
        """
        ...

    async def wait_for_events(self, run_id: str, after_seq: int, timeout: float) -> bool:
        """Wait until an event after `after_seq` is stored, by this process or another."""
        ...

    def pack_examples(self, examples: Sequence[SpooledExample]) -> None:
        """Do ahead, on any thread, what `add_examples` would spend time on.

        Raises Unencodable for an example that cannot be stored.
        """
        ...

    async def add_examples(
        self, run_id: str, examples: Sequence[SpooledExample], *, complete: bool = False
    ) -> None:
        """Spool examples; `complete` says there are no more, which fixes total_rows.

        They are stored before everything that is written after this call began.
        """
        ...

    async def share_examples(self, source: str, run_id: str) -> bool:
        """Let a run without examples have all those of another, which stores nothing twice.

        False if the other has not got all of its own yet. They stay readable
        when the other run is deleted.
        """
        ...

    async def copy_examples(self, source: str, run_id: str, start: int, limit: int) -> int:
        """Spool some examples of another run from an ordinal on; return how many, 0 at the end."""
        ...

    async def read_examples(self, run_id: str, start: int, limit: int) -> list[SpooledExample]:
        """Return spooled examples with ordinals from `start` on; a page is bounded in bytes too."""
        ...

    async def spooled(self, run_id: str) -> tuple[int, bool]:
        """Return how many examples are spooled, and whether that is all of them."""
        ...

    async def completed(
        self, run_id: str, system: str, start: int, stop: int
    ) -> set[tuple[int, int]]:
        """Return the (ordinal, repeat) of `system`'s stored rows with start <= ordinal < stop."""
        ...

    async def read_rows(
        self, run_id: str, query: RowQuery = ALL_ROWS, token: str | None = None
    ) -> RowPage:
        """Return rows by system in the run's order, then by ordinal and repeat.

        `token` is that of the page before, None for the first page.
        """
        ...

    async def read_rows_at(self, keys: Sequence[RowKey]) -> list[EvalRow | None]:
        """Return rows with their processed outputs, None for each that is not stored."""
        ...

    async def example_digests(self, run_id: str, limit: int) -> list[str]:
        """Return the digests of the first examples of a run, in order; none of an unknown run."""
        ...

    def iterate_rows(self, run_id: str, system: str) -> AsyncIterator[list[EvalRow]]:
        """Yield all rows of a system in that order, in pages, without processed outputs."""
        ...

    async def delete_run(self, run_id: str) -> None:
        """Delete a run with all that belongs to it alone; does nothing if it is unknown.

        Raises WrongState if another process holds the run.
        """
        ...

    async def delete_runs_older_than(self, seconds: float) -> list[str]:
        """Delete runs that finished so long ago and that no process holds; return their ids.

        Deletions that were interrupted are finished too.
        """
        ...

    async def request_cancel(self, run_id: str) -> None:
        """Ask the process that holds the run to cancel it."""
        ...

    async def cancel_requested(self, run_id: str) -> bool:
        """Tell whether that was asked; `append` with a state update forgets it."""
        ...

    def lock_run(self, run_id: str) -> AbstractContextManager[bool]:
        """Hold the run for this process while the context lasts; False if another holds it.

        The lock dies with the process that holds it.
        """
        ...

    async def close(self) -> None:
        """Finish what was asked for, then close."""
        ...
