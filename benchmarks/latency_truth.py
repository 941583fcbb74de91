"""The table's p50 against the same function timed in a bare loop, without cbench.

    python benchmarks/latency_truth.py [--milliseconds 1,20,200] [--systems 1,4]

Systems that sleep and systems that compute, served from Python and from Node and
called in process, at default settings, alone and four at once. The bare loop is
run before and after, in a process of the same language, since a busy machine
changes what is true. Where the two differ by more than 5 % the line is measured
again, up to five times; a line whose loop never agrees with itself decides nothing
and says by how much the machine moved. Aims: within 15 %, at 1 ms within 1 ms.

Beside them stands a bare gRPC call: the same server, called one at a time over gRPC's
own stub (unary; the daemon uses a standing stream) by a process that does nothing
else, before the run and after it. What it takes beyond the loop is the cost of
transport, SDK and machine ("gRPC adds"); what the table shows beyond it is ours
("We add"). The rule stays what it is, against the loop.

The last table is the throughput of a system that sleeps 10 ms, once the calls in
flight have found their level (sleeping_system.py).

A line that cannot be measured says why, and the others are measured. The whole
takes about five minutes; each line is shown when it is known.
"""

import argparse
import functools
import hashlib
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
from parts import (
    Program,
    between,
    make_examples,
    programs,
    scratch,
    start_daemon,
    table,
    verdict,
)
from sleeping_system import TITLES as THROUGHPUT
from sleeping_system import lines as throughput

from cbench_client import BenchClient
from cbench_client._gen.cbench.v1 import system_pb2, system_pb2_grpc
from cbench_client.messages import convert
from cbench_server import evaluate
from cbench_server.evaluators import AnswerQuality
from cbench_server.metrics import Latency

CALLS = 31
# Short enough that hashlib keeps the interpreter to itself, as computing in Python does.
BLOCK = bytes(1_500)
BARE_CALL = "bare call"
TITLES = [
    "System",
    "Systems",
    "Bare loop",
    "Bare gRPC call",
    "p50 alone",
    "n",
    "Off by",
    "Holds",
    "gRPC adds",
    "We add",
    "Under load",
]
HOLDS = TITLES.index("Holds")
NODE = Path(__file__).with_name("latency_truth.mjs")
NODE_SDK = Path(__file__).parents[1] / "clients" / "node" / "dist" / "index.js"


def work(kind: str, amount: float) -> None:
    """Sleep so many seconds, or hash so many blocks.

    An empty loop would not do: how long it takes differs by a fifth from process to process and
    thread to thread, with where the interpreter's memory happens to lie.
    """
    if kind == "sleep":
        time.sleep(amount)
        return
    for _ in range(int(amount)):
        hashlib.sha256(BLOCK).digest()


def counted_per_second() -> float:
    """Return how many blocks Python hashes in a second, at its best."""
    taken = []
    for _ in range(50):
        started = time.perf_counter()
        work("compute", 4_000)
        taken.append(time.perf_counter() - started)
    return 4_000 / min(taken)


class Worker:
    """A system that takes its time."""

    def __init__(self, kind: str, amount: float, name: str = "worker") -> None:
        self.name = name
        self._kind = kind
        self._amount = amount

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        work(self._kind, self._amount)
        return {**example, "response": example["question"]}


def bare(language: str, kind: str, amount: float) -> float:
    """Time the function in a loop of its own, in another process; return the median in seconds."""
    return float(subprocess.check_output(_command(language, "loop", kind, amount)))


@functools.cache
def per_second(language: str) -> float:
    """Return how much of it a language does in a second."""
    return float(subprocess.check_output(_command(language, "count", "compute", 0)))


def _command(language: str, mode: str, kind: str, amount: float, name: str = "") -> list[str]:
    program = ["node", str(NODE)] if language == "node" else [sys.executable, __file__]
    return [*program, mode, kind, str(amount), name]


def loop(kind: str, amount: float) -> None:
    """Print the median of the function in a bare loop, without the first call."""
    system = Worker(kind, amount)
    print(median_of(lambda: system.process({"question": "q"})))


def median_of(call: Callable[[], object]) -> float:
    """Return the median of so many calls in seconds, without the first."""
    taken = []
    for _ in range(CALLS):
        started = time.perf_counter()
        call()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken[1:])


def bare_call(address: str, name: str) -> float:
    """Time calls of a server by nothing but gRPC's stub, in another process."""
    return float(subprocess.check_output([sys.executable, __file__, "call", address, name]))


def call_alone(address: str, name: str) -> None:
    """Print the median of a unary call, whose message is made beforehand."""
    (example,) = make_examples(1, 400)
    request = system_pb2.ProcessRequest(system=name)
    convert.example_to_proto(example, request.example)
    with grpc.insecure_channel(address) as channel:
        stub = system_pb2_grpc.SystemStub(channel)
        print(median_of(lambda: stub.Process(request, timeout=60)))


def served(
    client: BenchClient, language: str, kind: str, amount: float, systems: int, rows: int
) -> dict[str, Any]:
    """Return the first system's part of the summary of a run at default settings.

    With it, what a bare call of that system takes.
    """
    names = [f"{language}-{number}" for number in range(systems)]
    started = [Program(*_command(language, "serve", kind, amount, name)) for name in names]
    with programs(*started):
        before = bare_call(started[0].address, names[0])
        digest, _ = client.upload(make_examples(rows, 400))
        run_id = client.start(
            {
                "systems": [{"target": each.address} for each in started],
                "datasets": [{"name": "made", "upload": digest}],
            }
        )
        for _ in client.watch(run_id):
            pass
        called = (before + bare_call(started[0].address, names[0])) / 2
    run = client.get(run_id)
    if run.progress.failed_rows:
        raise SystemExit(f"{run.progress.failed_rows} rows failed. {run.failure.message}")
    values = {value.system: dict(value.metrics) for value in run.summaries}[names[0]]
    return {**values, BARE_CALL: called}


def in_process(kind: str, amount: float, systems: int, rows: int) -> dict[str, Any]:
    """The same for Python objects."""
    offered = [Worker(kind, amount, f"w{number}") for number in range(systems)]
    examples = make_examples(rows, 400)
    result = evaluate(offered, examples, [AnswerQuality()], [Latency()], progress=False)
    return dict(result.summary["w0"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--milliseconds", default="1,20,200")
    parser.add_argument("--systems", default="1,4")
    parser.add_argument("--languages", default="python,node,in process")
    parser.add_argument("--kinds", default="sleep,compute")
    parser.add_argument("--rows", type=int, default=60)
    parser.add_argument("--in-flight", default="32", help="of the 10 ms system; empty: leave out")
    args = parser.parse_args()
    lines = []
    for kind in args.kinds.split(","):
        for milliseconds in map(float, args.milliseconds.split(",")):
            for language in args.languages.split(","):
                for systems in map(int, args.systems.split(",")):
                    measured = tried(language, kind, milliseconds, systems, args.rows)
                    lines.append(measured)
                    print(*measured, sep="  ", file=sys.stderr, flush=True)
    print(table(TITLES, lines))
    told = [each for each in lines if each[HOLDS] in ("yes", "NO")]
    holding = sum(each[HOLDS] == "yes" for each in told)
    print(
        f"\n{holding} of {len(told)} lines hold, {len(lines) - len(told)} could not be decided. "
        f"Load of the machine: {os.getloadavg()[0]:.1f}"
    )
    in_flight = [int(number) for number in args.in_flight.split(",") if number]
    if in_flight:
        print("\nA system that sleeps 10 ms, after the climb:\n")
        print(table(THROUGHPUT, list(throughput(in_flight, 4.0))))


def tried(language: str, kind: str, milliseconds: float, systems: int, rows: int) -> list[str]:
    """Measure one line, with a daemon of its own; say why where that cannot be done."""
    if language == "node" and shutil.which("node") is None:
        why = "no node on this machine"
    elif language == "node" and not NODE_SDK.exists():
        why = "the Node SDK is not built; in clients/node: npm ci && npm run build"
    else:
        try:
            with (
                scratch() as home,
                programs(start_daemon(home)) as (daemon,),
                BenchClient(daemon.address) as client,
            ):
                return line(client, language, kind, milliseconds, systems, rows)
        except (Exception, SystemExit) as error:
            why = f"not measured: {error}"
    return [
        f"{language}, {kind} {milliseconds:g} ms",
        str(systems),
        "",
        "",
        "",
        "",
        why,
        "",
        "",
        "",
        "",
    ]


def line(
    client: BenchClient, language: str, kind: str, milliseconds: float, systems: int, rows: int
) -> list[str]:
    """Measure one line of the table."""
    amount = milliseconds / 1e3
    if kind == "compute":
        amount *= per_second(language)
    if language == "in process":
        measure = functools.partial(in_process, kind, amount, systems, rows)
    else:
        measure = functools.partial(served, client, language, kind, amount, systems, rows)
    values, truth, moved = between(functools.partial(bare, language, kind, amount), measure)
    shown = values["latency_median"]
    off = shown - truth
    holds = abs(off) <= (0.001 if milliseconds <= 1 else 0.15 * truth)
    crowded = values.get("latency_under_load_median")
    called = values.get(BARE_CALL)
    return [
        f"{language}, {kind} {milliseconds:g} ms",
        str(systems),
        f"{truth * 1e3:.2f} ms",
        "" if called is None else f"{called * 1e3:.2f} ms",
        f"{shown * 1e3:.2f} ms",
        f"{values['num_timed_alone']:.0f}",
        f"{off * 1e3:+.2f} ms ({off / truth:+.0%})",
        verdict(holds=holds, moved=moved),
        "" if called is None else f"{(called - truth) * 1e3:+.2f} ms",
        "" if called is None else f"{(shown - called) * 1e3:+.2f} ms",
        "" if crowded is None else f"{crowded * 1e3:.2f} ms",
    ]


if __name__ == "__main__":
    if sys.argv[1:2] == ["loop"]:
        loop(sys.argv[2], float(sys.argv[3]))
    elif sys.argv[1:2] == ["call"]:
        call_alone(sys.argv[2], sys.argv[3])
    elif sys.argv[1:2] == ["count"]:
        print(counted_per_second())
    elif sys.argv[1:2] == ["serve"]:
        from cbench_client import serve

        serve(Worker(sys.argv[2], float(sys.argv[3]), sys.argv[4]), "127.0.0.1:0")
    else:
        main()
