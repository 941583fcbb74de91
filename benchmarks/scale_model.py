"""A model of daemons, their store and replicas: checked against this machine, then asked for more.

    python benchmarks/scale_model.py [--turns 3] [--rows 2000] [--check-only]

First the costs of a row are measured here: CPU of each process at full speed on either store, and
what lies between two calls of a lone replica. From these the model predicts points that it has
not seen, which are measured in turn with the costs; the aim is 20 %. Only then is it asked what
nobody here can run, with a core for each process.

This machine has few cores and others use it, too. Of several turns the least disturbed counts, as
the kernel tells it. Where replicas set the pace, rows per second are checked, and the model is told
how much longer work took for want of cores. Where the daemon does, rows per second are the
machine's: threads wait for cores, for each other and for Python's lock, often at the same time, and
to add these waits counts them twice. What is checked there is what the answers rest on: how many
rows the daemon makes in a second of its CPU.

The model is a discrete-event simulation of one window of rows. A process is a queue that serves one
job at a time, as Python does, and takes longer by what it waits for a core.
A call waits for nothing but its replica; a row waits for its store only when the
daemon has as many unstored rows as it may.
"""

import argparse
import heapq
import itertools
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from statistics import mean
from typing import Any

from parts import Program, make_examples, programs, scratch, start_daemon, table

from cbench_client import BenchClient, serve

sys.path.append(str(Path(__file__).resolve().parent.parent))

from tests.fixtures.postgres import postgres_server

WINDOW = 512
"""Rows of a run that may be unstored (runs/slots.py)."""
GROUP = 64
"""Rows of a commit, as many as wait and at most 256 (storage/writer.py); 64 is what was seen."""

# The simulation.

Step = tuple[str, Any, float]
Steps = Generator[Step, None, None]


@dataclass
class Server:
    """Serves so many jobs at a time, in order."""

    name: str
    most: int = 1
    busy: int = 0
    used: float = 0.0
    waiting: "deque[Callable[[], None]]" = field(default_factory=deque)

    def take(self, then: Callable[[], None]) -> None:
        if self.busy < self.most:
            self.busy += 1
            then()
        else:
            self.waiting.append(then)

    def give(self) -> None:
        if self.waiting:
            self.waiting.popleft()()
        else:
            self.busy -= 1


class Simulation:
    """Runs steps of many processes in the order of their times."""

    def __init__(self) -> None:
        self.now = 0.0
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()

    def after(self, seconds: float, then: Callable[[], None]) -> None:
        heapq.heappush(self._heap, (self.now + seconds, next(self._numbers), then))

    def start(self, steps: Steps) -> None:
        """Go on with a process until it waits for something."""
        try:
            kind, what, seconds = next(steps)
        except StopIteration:
            return
        if kind == "wait":
            self.after(seconds, lambda: self.start(steps))
        elif kind == "until":
            what.append(lambda: self.start(steps))
        else:
            self._use(what, seconds, lambda: self.start(steps))

    def _use(self, servers: tuple[Server, ...], seconds: float, then: Callable[[], None]) -> None:
        """Take all servers, one after the other, for so long."""

        def done() -> None:
            for server in servers:
                server.used += seconds
                server.give()
            then()

        def take(place: int) -> None:
            if place == len(servers):
                self.after(seconds, done)
            else:
                servers[place].take(lambda: take(place + 1))

        take(0)

    def run(self, goes_on: Callable[[], bool]) -> None:
        while goes_on() and self._heap:
            self.now, _, then = heapq.heappop(self._heap)
            then()


# What is modelled.


@dataclass(frozen=True)
class Costs:
    """Seconds of CPU per row, and what a call takes besides its system."""

    daemon: float
    system: float
    client: float
    store: float = 0.0
    """Of the database server."""
    call: float = 0.0
    """Between two calls of a replica that takes one at a time, without the CPU above."""
    slowed: float = 1.0
    """How much longer that of the daemon takes, its client and its store, since cores are waited
    for."""
    systems_slowed: float = 1.0
    """How much longer that of a system takes."""


@dataclass(frozen=True)
class Setup:
    """Who works together."""

    replicas: int = 1
    at_once: int = 1
    """Calls that a replica takes at a time."""
    seconds: float = 0.0
    """What a call takes in the system, asleep."""
    daemons: int = 1
    """Each with a run, and with its share of the replicas: a run has one owner."""
    store_cores: int = 2
    """Of the database server, where it has a machine of its own."""


@dataclass
class Run:
    """What a daemon has under way."""

    unstored: int = 0
    to_commit: int = 0
    client: Server = field(default_factory=lambda: Server("client"))
    """Who watches it."""
    waiting: "list[Callable[[], None]]" = field(default_factory=list)


@dataclass(frozen=True)
class Predicted:
    """What the model says."""

    rate: float
    loads: dict[str, float]

    @property
    def first(self) -> str:
        """What is nearest to its limit."""
        return max(self.loads, key=lambda name: self.loads[name])


def predict(costs: Costs, setup: Setup, rows: int = 20_000) -> Predicted:
    """Simulate a window of rows and return the rate after its first fifth."""
    simulation = Simulation()
    store = Server("store", setup.store_cores)
    daemons = [Server("daemon") for _ in range(setup.daemons)]
    done: list[float] = []

    def slot(daemon: Server, system: Server, run: Run) -> Steps:
        while True:
            # Half of a daemon's work is before the answer and half after it, as profiles show.
            yield "use", (daemon,), costs.daemon / 2 * costs.slowed
            yield "use", (system,), costs.system * costs.systems_slowed
            yield "wait", None, setup.seconds + costs.call
            yield "use", (daemon,), costs.daemon / 2 * costs.slowed
            run.unstored += 1
            run.to_commit += 1
            if run.to_commit == GROUP:
                run.to_commit = 0
                simulation.start(commit(run))
            if run.unstored >= WINDOW:
                yield "until", run.waiting, 0.0

    def commit(run: Run) -> Steps:
        if costs.store:
            yield "use", (store,), costs.store * GROUP * costs.slowed
        yield "use", (run.client,), costs.client * GROUP * costs.slowed
        run.unstored -= GROUP
        done.extend([simulation.now] * GROUP)
        waiting, run.waiting = run.waiting, []
        for resume in waiting:
            resume()

    runs = [Run() for _ in daemons]
    for place in range(setup.replicas):
        which = place % len(daemons)
        system = Server("system")
        for _ in range(setup.at_once):
            simulation.start(slot(daemons[which], system, runs[which]))
    simulation.run(lambda: len(done) < rows)
    begun = len(done) // 5
    rate = (len(done) - begun) / (done[-1] - done[begun])
    now = simulation.now
    loads = {"daemon": max(each.used for each in daemons) / now}
    if costs.store:
        loads["store"] = store.used / now / store.most
    loads["replicas"] = min(1.0, rate * setup.seconds / (setup.replicas * setup.at_once))
    return Predicted(rate, loads)


# What is measured.


class Sleeper:
    """Sleeps so long, and takes so many calls at once."""

    name = "sleeper"
    version = "1"

    def __init__(self, seconds: float, at_once: int) -> None:
        self.max_concurrency = at_once
        self._seconds = seconds

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        if self._seconds:
            time.sleep(self._seconds)
        return {**example, "response": "a"}


def start_sleeper(seconds: float, at_once: int) -> Program:
    return Program(sys.executable, __file__, "serve", str(seconds), str(at_once))


@dataclass
class Measured:
    """What was seen of a run, after the rows that are timed alone and the climb."""

    rate: float
    daemon: float
    systems: float
    client: float
    store: float
    slowed: float
    """What the daemon took with its waits for a core, of what it worked."""
    systems_slowed: float
    """The same of the systems, in the mean."""


def measure(
    seconds: float, replicas: int, at_once: int, rows: int, store: str = "", postgres: Any = None
) -> Measured:
    """Run, and return its rate and CPU seconds per row."""
    with ExitStack() as stack:
        home = stack.enter_context(scratch())
        daemon = start_daemon(home, env={"CBENCH_STORE": store} if store else None)
        systems = [start_sleeper(seconds, at_once) for _ in range(replicas)]
        stack.enter_context(programs(daemon, *systems))
        client = stack.enter_context(BenchClient(daemon.address))
        digest, _ = client.upload(make_examples(rows, 400))
        first, *others = (system.address for system in systems)
        spec = {
            "systems": [{"target": first, "replicas": others}],
            "datasets": [{"name": "made", "upload": digest}],
            "timed_rows": 0,
            "asked_again": 0,
            "max_concurrency": at_once,
        }

        def used() -> tuple[float, ...]:
            of_store = _cpu_of_tree(postgres) if postgres else 0.0
            of_systems = sum(system.cpu_seconds for system in systems)
            return (
                time.perf_counter(),
                daemon.cpu_seconds,
                of_systems,
                time.process_time(),
                of_store,
            )

        def threads() -> list[Threads]:
            return [_threads(each.process.pid) for each in (daemon, *systems)]

        seen, since, begun = 0, used(), threads()
        for event in client.watch(client.start(spec)):
            if event.WhichOneof("kind") != "row":
                continue
            seen += 1
            if seen == rows // 4:
                since, begun = used(), threads()
            if seen == rows:
                break
        wall, *cpu = (now - then for now, then in zip(used(), since, strict=True))
        counted = rows - rows // 4
        slowed, *of_systems = map(_slowed, begun, threads())
        return Measured(counted / wall, *(each / counted for each in cpu), slowed, mean(of_systems))


Threads = dict[str, tuple[float, float]]
"""Of each thread of a process, the seconds that it ran, and that it was ready and had no core."""


def _threads(process: int) -> Threads:
    found: Threads = {}
    for path in Path(f"/proc/{process}/task").glob("*/schedstat"):
        try:
            ran, waited, _ = path.read_text().split()
        except OSError:
            continue
        found[path.parent.name] = int(ran) / 1e9, int(waited) / 1e9
    return found


def _slowed(then: Threads, now: Threads) -> float:
    """Return what the busiest thread took with its waits, of what it worked."""
    spent = [
        [at - before for at, before in zip(times, then.get(name, (0.0, 0.0)), strict=True)]
        for name, times in now.items()
    ]
    ran, waited = max(spent)
    return 1 + waited / ran if ran else 1.0


def _cpu_of_tree(root: int) -> float:
    """Return the CPU seconds of a process and all its children, those that ended included."""
    ticks = os.sysconf("SC_CLK_TCK")
    total = 0.0
    for path in Path("/proc").iterdir():
        if not path.name.isdecimal():
            continue
        try:
            fields = (path / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(path.name) == root:
            total += sum(int(each) for each in fields[11:15]) / ticks
        elif int(fields[1]) == root:
            total += (int(fields[11]) + int(fields[12])) / ticks
    return total


@dataclass(frozen=True)
class Point:
    """A setup that is measured, on one of the stores."""

    title: str
    setup: Setup
    store: str = "SQLite"
    rows: int = 0
    """How many rows, where it is slow; else as many as are asked for."""


LONE = Point("1 x 20 ms", Setup(1, 1, 0.02), rows=120)
FULL = {name: Point(f"full speed, {name}", Setup(1, 16), name) for name in ("SQLite", "PostgreSQL")}
CALIBRATING = (LONE, *FULL.values())
CHECKED = (
    Point("2 x 20 ms", Setup(2, 1, 0.02), rows=240),
    Point("4 x 20 ms", Setup(4, 1, 0.02), rows=480),
    Point("1 x 100 ms, 4 at once", Setup(1, 4, 0.1), rows=160),
    Point("4 x 20 ms, PostgreSQL", Setup(4, 1, 0.02), "PostgreSQL", rows=480),
    Point("2 x at once, SQLite", Setup(2, 16)),
    Point("4 x at once, SQLite", Setup(4, 16)),
    Point("2 x at once, PostgreSQL", Setup(2, 16), "PostgreSQL"),
    Point("4 x at once, PostgreSQL", Setup(4, 16), "PostgreSQL"),
)


def measured(turns: int, rows: int, server: Any) -> dict[Point, Measured]:
    """Measure every point in turn with all others; return the least disturbed turn of each.

    Where the daemon sets the pace that is the one with the least CPU per row: cold caches and
    small groups only add to it. Elsewhere it is the one that waited least for a core.
    """
    found: dict[Point, list[Measured]] = {}
    for _ in range(turns):
        for point in (*CALIBRATING, *CHECKED):
            is_shared = point.store == "PostgreSQL"
            store, postgres = (server.new_store(), server.pid) if is_shared else ("", None)
            setup = point.setup
            seen = measure(
                setup.seconds,
                setup.replicas,
                setup.at_once,
                point.rows or rows,
                store,
                postgres,
            )
            found.setdefault(point, []).append(seen)
    return {
        point: min(seen, key=lambda each: each.slowed if point.setup.seconds else each.daemon)
        for point, seen in found.items()
    }


def calibrated(seen: dict[Point, Measured]) -> dict[str, Costs]:
    """Return the costs of a row on both stores."""
    cpu = {
        name: Costs(full.daemon, full.systems, full.client, full.store)
        for name, full in ((name, seen[point]) for name, point in FULL.items())
    }
    # All that is between two calls but that work; a row that travels alone takes more of it.
    lone, work = seen[LONE], cpu[LONE.store]
    work_s = work.daemon * lone.slowed + work.system * lone.systems_slowed
    pause = max(0.0, 1 / lone.rate - LONE.setup.seconds - work_s)
    return {name: replace(each, call=pause) for name, each in cpu.items()}


def checked(costs: dict[str, Costs], seen: dict[Point, Measured]) -> Iterator[list[str]]:
    """Compare what is predicted with what was measured, one line each."""
    for point in CHECKED:
        found = seen[point]
        told = replace(costs[point.store], slowed=found.slowed, systems_slowed=found.systems_slowed)
        predicted = predict(told, point.setup, 6_000)
        unit, said, was = "rows/s", predicted.rate, found.rate
        if predicted.first == "daemon":
            # In this unit the waits of the machine cancel out.
            unit = "rows per CPU second of the daemon"
            said = predicted.rate * told.slowed / predicted.loads["daemon"]
            was = 1 / found.daemon
        yield [
            point.title,
            f"{said:,.0f}",
            f"{was:,.0f}",
            unit,
            f"{said / was - 1:+.0%}",
            f"{found.slowed:.1f}, {found.systems_slowed:.1f} times",
        ]


def asked(costs: Costs) -> Iterator[list[str]]:
    """Ask for what nobody here can run: every process with a core of its own."""
    for daemons, replicas, seconds in (
        (1, 100, 0.1),
        (1, 100, 0.001),
        (1, 10_000, 10.0),
        (8, 800, 0.1),
        (8, 800, 0.001),
        (32, 3_200, 0.1),
        (32, 3_200, 0.001),
        (32, 10_000, 1.0),
    ):
        setup = Setup(replicas, 1, seconds, daemons, store_cores=8)
        found = predict(costs, setup, 30_000)
        yield [
            f"{daemons}",
            f"{replicas:,}",
            f"{seconds:g} s",
            f"{found.rate:,.0f}",
            *(_span(rows / found.rate) for rows in (1e6, 1e8, 1e9)),
            *(f"{found.loads[name]:.0%}" for name in ("replicas", "daemon", "store")),
        ]


def _span(seconds: float) -> str:
    for unit, length in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= length:
            return f"{seconds / length:,.1f} {unit}"
    return f"{seconds:.0f} s"


def main() -> None:
    """Measure, check, ask."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--check-only", action="store_true")
    args = parser.parse_args()
    with postgres_server("fsync=on", "shared_buffers=128MB", "autovacuum=on") as server:
        seen = measured(args.turns, args.rows, server)
    costs = calibrated(seen)
    titles = ["CPU per row on", "daemon", "system", "client", "database", "between calls"]
    lines = []
    for name, cost in costs.items():
        lines.append([name, *(f"{each * 1e6:,.0f} us" for each in astuple(cost)[:-2])])
    print(table(titles, lines))
    titles = ["", "predicted", "measured", "", "difference", "daemon, systems slowed"]
    print(table(titles, list(checked(costs, seen))))
    if not args.check_only:
        titles = [
            "daemons",
            "replicas",
            "call",
            "rows/s",
            "1 M",
            "100 M",
            "1 G",
            "replicas",
            "daemon",
            "store",
        ]
        shared = costs["PostgreSQL"]
        alone = Costs(shared.daemon, shared.system, shared.client, shared.store)
        print(table(titles, list(asked(alone))))


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(Sleeper(float(sys.argv[2]), int(sys.argv[3])), "127.0.0.1:0")
    else:
        main()
