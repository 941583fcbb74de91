"""Follower of a run: progress on stderr, rows to a callback, Ctrl-C cancels."""

import argparse
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress

from cbench_client import BenchClient
from cbench_client._gen.cbench.v1 import bench_pb2
from cbench_client.errors import ClientError
from cbench_server.cli.exits import FAILED, INTERRUPTED, OK, CommandFailed, complain
from cbench_server.cli.launches import Launches
from cbench_server.cli.output import complain_of_failure, exit_code, print_end, print_row
from cbench_server.cli.signals import leave
from cbench_server.cli.stored_runs import run_of
from cbench_server.rpc.runs import state_from_proto
from cbench_server.runs.progress import ProgressDisplay, open_progress
from cbench_server.spec import Run, RunState
from cbench_server.texts.grid import printable

OnRow = Callable[[bench_pb2.EvalRow], None]


class Interrupted(Exception):
    """The user stopped the run; it is cancelled and its rows are kept."""

    def __init__(self, run: Run) -> None:
        self.run = run
        super().__init__(run.run_id)


class Abandoned(CommandFailed):
    """What is left of the run is for systems that are not started again; its rows are kept."""

    def __init__(self, run: Run, deaths: str) -> None:
        self.run = run
        super().__init__(deaths)


class Follower:
    """Takes the events of one run; `run` is its state at the end."""

    def __init__(
        self,
        client: BenchClient,
        display: ProgressDisplay,
        on_row: OnRow | None,
        launches: Launches | None,
    ) -> None:
        self._client = client
        self._display = display
        self._on_row = on_row
        self._launches = launches
        self._addresses: dict[str, list[str]] | None = None
        self._is_waiting = False
        self._unfinished: list[str] = []
        self.run_id = ""
        self.run: Run | None = None

    def take(self, event: bench_pb2.RunEvent) -> None:
        """Show an event."""
        kind = event.WhichOneof("kind")
        if kind == "row" and self._on_row is not None:
            self._on_row(event.row)
        elif kind == "progress":
            self._show(event.progress)
        elif kind == "state_change":
            self._note(state_from_proto(event.state_change.state), event.state_change.reason)
        elif kind == "accepted":
            self.run_id = event.accepted.run_id
            self._display.note(f"run {self.run_id}")
            if self._launches is not None:
                self._launches.remember(self.run_id)
                self._launches.explain()
            for note in run_of(event.accepted).notes:
                self._display.note(f"note: {printable(note.text)}")
            self._show(event.accepted.progress)
        elif kind == "finished":
            self.run = run_of(event.finished)
            if self._launches is not None and self.run.state is RunState.SUCCEEDED:
                self._launches.forget(self.run_id)
            self._show(event.finished.progress)

    def lost(self) -> str:
        """Say how systems ended that are all the run waits for and that nobody starts again."""
        ended = self._launches.given_up() if self._launches and self._is_waiting else {}
        if not ended:
            return ""
        asked = [
            self._addresses.get(name, []) if self._addresses else [] for name in self._unfinished
        ]
        if not all(addresses and ended.keys() >= {*addresses} for addresses in asked):
            return ""
        return " ".join(dict.fromkeys(ended[each] for addresses in asked for each in addresses))

    def explain_wait(self, reason: str) -> None:
        """Tell the run how a launched system ended; the person is told elsewhere."""
        if self.run_id:
            with suppress(ClientError):
                self._client.explain_wait(self.run_id, reason)

    def _show(self, progress: bench_pb2.Progress) -> None:
        self._unfinished = []
        for system in progress.systems:
            total = system.total_rows if system.HasField("total_rows") else None
            self._display.set(
                printable(system.system), system.completed_rows, system.failed_rows, total
            )
            if system.completed_rows != total:
                self._unfinished.append(system.system)
        if self._launches is not None:
            self._launches.count(self._good_rows(progress))

    def _good_rows(self, progress: bench_pb2.Progress) -> dict[str, int]:
        """Count the rows that did not fail, by the address of their system."""
        if self._addresses is None:
            known = run_of(self._client.get(self.run_id)).config.get("systems", [])
            self._addresses = {
                each["name"]: each.get("replicas") or [each["location"]] for each in known
            }
        counts: Counter[str] = Counter()
        for system in progress.systems:
            for address in self._addresses.get(system.system, ()):
                counts[address] += system.completed_rows - system.failed_rows
        return counts

    def _note(self, state: RunState, reason: str) -> None:
        self._is_waiting = state is RunState.WAITING
        if self._launches is not None:
            reason = self._launches.without_deaths(reason)
        self._display.wait(printable(reason) if self._is_waiting else "")
        if reason and state is RunState.RUNNING:
            self._display.note(printable(reason))


def follow(
    client: BenchClient,
    events: Iterable[bench_pb2.RunEvent],
    *,
    run_id: str = "",
    quiet: bool = False,
    on_row: OnRow | None = None,
    cancels: bool = True,
    launches: Launches | None = None,
) -> Run:
    """Follow a run to its end and return it.

    Ctrl-C cancels the run and raises `Interrupted`, or, unless `cancels`,
    leaves it alone and raises KeyboardInterrupt. A second one ends the process.
    Where only launched systems have rows left that died too often to be started
    again, the run is cancelled, and `Abandoned` says how they ended.
    """
    with ExitStack() as stack:
        display = stack.enter_context(open_progress(not quiet, {}))
        follower = Follower(client, display, on_row, launches)
        follower.run_id = run_id
        stack.enter_context(_speaking(launches, follower, display))
        try:
            for event in events:
                follower.take(event)
                if follower.run is None and (deaths := follower.lost()):
                    raise Abandoned(run_of(client.cancel(follower.run_id)), deaths)
        except KeyboardInterrupt:
            if not (cancels and follower.run_id):
                raise
            _end_on_next_interrupt()
            display.note("cancelling; press Ctrl-C again to leave at once")
            raise Interrupted(run_of(client.cancel(follower.run_id))) from None
    return follower.run or run_of(client.get(follower.run_id))


@contextmanager
def _speaking(
    launches: Launches | None, follower: Follower, display: ProgressDisplay
) -> Iterator[None]:
    """Show what launched systems say above the progress, and tell the run how they ended."""
    if launches is None:
        yield
        return
    launches.voice.through = display.note
    launches.explain_to(follower.explain_wait)
    try:
        yield
    finally:
        launches.explain_to(None)
        launches.voice.through = None


def conclude(
    client: BenchClient,
    events: Iterable[bench_pb2.RunEvent],
    args: argparse.Namespace,
    *,
    run_id: str = "",
    streams_rows: bool = False,
    with_rows: bool = False,
    cancels: bool = True,
    launches: Launches | None = None,
    at_end: Callable[[BenchClient, Run], int] | None = None,
) -> int:
    """Follow a run to its end, print it, and return the exit code.

    Rows are printed as they come (`streams_rows`), or after the end as the format has it;
    `at_end` checks a run that did not fail and returns its exit code.
    """
    on_row = print_row if streams_rows else None
    try:
        run = follow(
            client,
            events,
            run_id=run_id,
            quiet=args.quiet,
            on_row=on_row,
            cancels=cancels,
            launches=launches,
        )
    except Interrupted as interruption:
        kept = interruption.run
        how = f"resume with: cbench resume {kept.run_id}"
        print(f"kept {kept.completed_rows:,} rows; {how}", file=sys.stderr)
        return INTERRUPTED
    except Abandoned as abandoned:
        kept = abandoned.run
        complain(str(abandoned))
        how = f"once it is mended: cbench resume {kept.run_id}"
        print(f"kept {kept.completed_rows:,} rows; {how}", file=sys.stderr)
        return FAILED
    if streams_rows:
        complain_of_failure(run)
    else:
        print_end(client, run, args.output, with_rows=with_rows)
    code = exit_code(run)
    return at_end(client, run) if at_end is not None and code == OK else code


def _end_on_next_interrupt() -> None:
    signal.signal(signal.SIGINT, lambda *_: leave(INTERRUPTED))
