"""The store of runs, as the orchestrator sees it. storage/sqlite.py is the one we ship."""

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from cbench_server.events import Stored, StoredEvent
from cbench_server.results import EvalRow
from cbench_server.runs.intents import Intents
from cbench_server.runs.ownership import Claim, Ownership
from cbench_server.spec import Run, RunState

Committed = Callable[[str, Sequence[StoredEvent], float], None]
"""Told the run, what of it was stored in one commit, and the seconds that took."""


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


@dataclass(frozen=True, slots=True)
class RunPage:
    """Some runs, newest first, and the id to go on before; None at the end."""

    runs: list[Run]
    next_before: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionRule:
    """What is kept of finished runs; None asks for nothing."""

    older_than: float | None = None
    """Let go what ended more seconds ago."""
    keep: int | None = None
    """Keep so many, the newest."""
    max_bytes: int | None = None
    """Let the oldest go until the store takes no more."""


@dataclass(frozen=True, slots=True)
class PrunedRun:
    """A run that retention lets go."""

    run_id: str
    end_time: float
    size: int
    why: str
    """Which part of the rule: age, count or bytes."""


class RunStore(Protocol):
    """Keeps runs, their examples and their events.

    Methods may be awaited from one event loop only; they do their work on
    other threads. Once `append` has returned, its events are on disk. A
    commit that carries a claim which is lost raises LostClaim and changes nothing;
    one without a claim is not checked. StoreAway says that a store is busy, full or
    read-only: what was asked has not been done, and may be asked again.
    """

    @property
    def owners(self) -> Ownership:
        """Who owns which run."""
        ...

    @property
    def intents(self) -> Intents:
        """What is asked of owners."""
        ...

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
        """Return a run with its current progress, or raise UnknownRun.

        Raises DamagedRun where anything of it is not what was written.
        """
        ...

    async def list_runs(
        self,
        *,
        limit: int = 50,
        before: str | None = None,
        states: Collection[RunState] = (),
        labels: Mapping[str, str] | None = None,
    ) -> list[Run]:
        """Return runs, newest first; `before` is the last run_id of the page before.

        A damaged run is among them as one that failed and whose `damage` says what was
        found; where its state and labels cannot be told, whatever is asked for.
        """
        ...

    async def page_runs(
        self,
        *,
        limit: int = 50,
        before: str | None = None,
        states: Collection[RunState] = (),
        labels: Mapping[str, str] | None = None,
        created_by: str | None = None,
        max_bytes: int = 8_000_000,
    ) -> RunPage:
        """Return runs as `list_runs` does, but no more than a page may hold in bytes."""
        ...

    async def unfinished(self) -> list[str]:
        """Return the ids of runs that are not over, oldest first, readable or not."""
        ...

    async def append(
        self,
        run_id: str,
        events: Sequence[StoredEvent],
        *,
        update: Mapping[str, Any] | None = None,
        claim: Claim | None = None,
    ) -> int:
        """Append events, and set attributes of the run, in one transaction; return the last seq.

        Concurrent calls are committed together. A row whose key
        (system, ordinal, repeat) is stored already is dropped, so a row is
        never stored twice; progress counters follow what was really stored.
        `update` names attributes of Run, such as state or config. Raises
        WrongState for a state that cannot follow the run's (lifecycle.py), and for
        what an owner wants to add to a run that is over.
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
        self,
        run_id: str,
        examples: Sequence[SpooledExample],
        *,
        complete: bool = False,
        claim: Claim | None = None,
    ) -> None:
        """Spool examples; `complete` says there are no more, which fixes total_rows.

        They are stored before everything that is written after this call began.
        """
        ...

    async def share_examples(self, source: str, run_id: str, *, claim: Claim | None = None) -> bool:
        """Let a run without examples have all those of another, which stores nothing twice.

        False if the other has not got all of its own yet. They stay readable
        when the other run is deleted.
        """
        ...

    async def copy_examples(
        self, source: str, run_id: str, start: int, limit: int, *, claim: Claim | None = None
    ) -> int:
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

    async def delete_run(self, run_id: str, *, claim: Claim | None = None) -> bool:
        """Delete a run with all that belongs to it alone; return False if it is unknown.

        Without a claim, claims it meanwhile; raises WrongState if that cannot be.
        """
        ...

    async def prune(self, rule: RetentionRule, *, dry_run: bool = False) -> list[PrunedRun]:
        """Delete the runs that a rule lets go, oldest first, and return them.

        Runs that are not over, that are pinned or damaged, or that a process holds, stay.
        """
        ...

    async def pin(self, run_id: str, pinned: bool = True) -> None:
        """Keep `prune` from deleting a run, or let it."""
        ...

    async def finish_deletions(self) -> list[str]:
        """Finish deletions that were interrupted; return the ids of their runs."""
        ...

    async def uploads_in_use(self) -> set[str] | None:
        """Return the digests of uploads that runs name, or more; None if that cannot be told."""
        ...

    async def close(self) -> None:
        """Finish what was asked for, then close."""
        ...


async def iterate_rows(store: RunStore, run_id: str, system: str) -> AsyncIterator[list[EvalRow]]:
    """Do what `RunStore.iterate_rows` says, page by page of `read_rows`."""
    query, token = RowQuery(system=system, limit=1000), None
    while True:
        page = await store.read_rows(run_id, query, token)
        if page.rows:
            yield page.rows
        token = page.next_token
        if token is None:
            return
