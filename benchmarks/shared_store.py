"""A store in PostgreSQL against one in a file, two daemons against one, and a takeover.

    python benchmarks/shared_store.py [--rows 4000] [--turns 3] [--size 400] [--takeover]

Prints ratios of one run: rows per second end to end in PostgreSQL of those in SQLite (turns
alternate), the CPU of two daemons per row, each with a run of its own, of that of one, and
with --takeover the seconds from a kill of the owner to the next row, with default settings.
The server is a real one in a temporary folder, with fsync on.
"""

import argparse
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from parts import Program, make_examples, programs, scratch, start_daemon, start_echo, table

from cbench_client import BenchClient

sys.path.append(str(Path(__file__).resolve().parent.parent))

from tests.fixtures.postgres import PostgresServer, postgres_server


def spec_of(client: BenchClient, examples: list[dict[str, Any]], target: str) -> dict[str, Any]:
    """Upload examples and return a run over them."""
    digest, _ = client.upload(examples)
    return {
        "systems": [{"target": target}],
        "datasets": [{"name": "bench", "upload": digest}],
        "evaluators": [{"name": "answer-quality"}],
        "replace_evaluators": True,
        "max_concurrency": 64,
        "timed_rows": 0,
        "asked_again": 0,
    }


def measured(daemon: Program, client: BenchClient, spec: dict[str, Any]) -> tuple[float, float]:
    """Return rows per second, and microseconds of the daemon's CPU per row."""
    cpu, started, rows = daemon.cpu_seconds, time.perf_counter(), 0
    for event in client.evaluate(spec):
        rows += event.WhichOneof("kind") == "row"
    elapsed = time.perf_counter() - started
    return rows / elapsed, (daemon.cpu_seconds - cpu) / rows * 1e6


def both_stores(server: PostgresServer, rows: int, turns: int, size: int) -> list[list[str]]:
    """Measure one daemon on each kind of store, in turns."""
    examples = list(make_examples(rows, size))
    rates: dict[str, list[tuple[float, float]]] = {"SQLite": [], "PostgreSQL": []}
    with ExitStack() as stack:
        places = {"SQLite": "", "PostgreSQL": server.new_store()}
        echo = stack.enter_context(programs(start_echo("stream", 0.0)))[0]
        started = {}
        for name, store in places.items():
            home = stack.enter_context(scratch())
            env = {"CBENCH_STORE": store} if store else {}
            daemon = stack.enter_context(programs(start_daemon(home, env=env)))[0]
            client = stack.enter_context(BenchClient(daemon.address))
            started[name] = (daemon, client, spec_of(client, examples, echo.address))
            measured(*started[name])
        for _ in range(turns):
            for name, parts in started.items():
                rates[name].append(measured(*parts))
    lines = []
    for name, found in rates.items():
        speed, cpu = (statistics.median(each) for each in zip(*found, strict=True))
        lines.append([name, f"{speed:,.0f}", f"{cpu:,.0f}"])
    ratios = [
        [one / other for one, other in zip(mine, base, strict=True)]
        for mine, base in zip(rates["PostgreSQL"], rates["SQLite"], strict=True)
    ]
    speed, cpu = (statistics.median(each) for each in zip(*ratios, strict=True))
    return [*lines, ["ratio", f"{speed:.2f}", f"{cpu:.2f}"]]


def two_daemons(server: PostgresServer, rows: int, turns: int, size: int) -> list[list[str]]:
    """Measure the CPU per row of one daemon, and of two at once with their own runs."""
    examples = list(make_examples(rows, size))
    alone, beside = [], []
    with ExitStack() as stack:
        store = server.new_store()
        parts = []
        for _ in range(2):
            home = stack.enter_context(scratch())
            daemon = start_daemon(home, env={"CBENCH_STORE": store})
            daemon, echo = stack.enter_context(programs(daemon, start_echo("stream", 0.0)))
            client = stack.enter_context(BenchClient(daemon.address))
            parts.append((daemon, client, spec_of(client, examples, echo.address)))
        measured(*parts[0])
        measured(*parts[1])
        for _ in range(turns):
            alone.append(measured(*parts[0])[1])
            with ThreadPoolExecutor(2) as pool:
                found = list(pool.map(lambda part: measured(*part)[1], parts))
            beside.append(statistics.mean(found))
    ratio = statistics.median(two / one for one, two in zip(alone, beside, strict=True))
    return [
        ["one daemon", f"{statistics.median(alone):,.0f}"],
        ["two daemons", f"{statistics.median(beside):,.0f}"],
        ["ratio", f"{ratio:.2f}"],
    ]


def takeover(server: PostgresServer) -> float:
    """Kill an owner, and return the seconds until another daemon stores a row."""
    with scratch() as one, scratch() as two, ExitStack() as stack:
        env = {"CBENCH_STORE": server.new_store()}
        first, second, echo = stack.enter_context(
            programs(
                start_daemon(one, env=env), start_daemon(two, env=env), start_echo("stream", 0.2)
            )
        )
        with BenchClient(first.address) as client:
            run_id = client.start(spec_of(client, list(make_examples(60_000, 400)), echo.address))
            while client.get(run_id).progress.completed_rows < 100:
                time.sleep(0.05)
        first.kill()
        killed = time.monotonic()
        with BenchClient(second.address) as client:
            before = client.get(run_id).progress.completed_rows
            while client.get(run_id).progress.completed_rows == before:
                time.sleep(0.05)
            return time.monotonic() - killed


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--size", type=int, default=400)
    parser.add_argument("--takeover", action="store_true")
    args = parser.parse_args()
    with postgres_server("fsync=on", "shared_buffers=128MB", "autovacuum=on") as server:
        sizes = (args.rows, args.turns, args.size)
        print(table(["store", "rows/s", "CPU us/row"], both_stores(server, *sizes)))
        print(table(["daemons on one PostgreSQL", "CPU us/row"], two_daemons(server, *sizes)))
        if args.takeover:
            print(f"takeover: {takeover(server):.1f} s with a lease of 30 s")


if __name__ == "__main__":
    main()
