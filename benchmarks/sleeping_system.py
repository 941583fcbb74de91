"""Rows per second of a system that sleeps 10 ms, once the calls in flight have found their level.

    python benchmarks/sleeping_system.py [--in-flight 8,16,32] [--seconds 4]

The climb is measured apart: how long until the level was reached. After it, ours
stands beside two others: the ideal, and the same system called over the same stream
by a loop that neither scores nor stores (bare), before and after. What is missing
to the ideal there is the transport's; the CPU time of all three processes per row
says how many cores the ideal would take.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Iterator
from typing import Any

from parts import Program, make_examples, programs, scratch, start_daemon, table

from cbench_client import BenchClient, serve
from cbench_client.remote.connection import SystemConnection

SLEEP_S = 0.010


class Sleeper:
    """Sleeps in a thread, as most systems that wait for something do."""

    name = "sleeper"
    version = "1"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        time.sleep(SLEEP_S)
        return {**example, "response": example["question"]}


def start_sleeper() -> Program:
    """Start the system."""
    return Program(sys.executable, __file__, "serve")


async def bare(address: str, in_flight: int, seconds: float) -> float:
    """Return the rows per second of the stream alone."""
    connection = SystemConnection(address)
    await connection.describe()
    examples = list(make_examples(200, 400))
    until, done = time.perf_counter() + seconds, 0

    async def work(caller: int) -> None:
        nonlocal done
        number = 0
        while time.perf_counter() < until:
            number += 1
            example = examples[number % len(examples)]
            call_id = f"{caller}-{number}"
            await connection.process("sleeper", example, call_id=call_id, timeout=60)
            done += 1

    started = time.perf_counter()
    await asyncio.gather(*(work(caller) for caller in range(in_flight)))
    rate = done / (time.perf_counter() - started)
    await connection.close()
    return rate


class Steady:
    """What was seen of a run after its climb."""

    def __init__(self, measured: tuple[Program, Program]) -> None:
        self._measured = measured
        self._since: tuple[float, ...] | None = None
        self._rows = 0
        self._began = time.perf_counter()
        self.climb_s = 0.0
        self.rate = 0.0
        self.cpu_us: tuple[float, ...] = ()

    def count(self, rows: int) -> None:
        """Take note of rows after the climb."""
        if self._since is None:
            self.climb_s = time.perf_counter() - self._began
            self._since = self._now()
        self._rows += rows

    def end(self) -> None:
        """Take note of the last row: what the daemon does after it is no row's."""
        if self._since is None:
            raise SystemExit("the level was not reached; give it more --seconds")
        wall, *cpu = (now - then for now, then in zip(self._now(), self._since, strict=True))
        self.rate = self._rows / wall
        self.cpu_us = tuple(seconds / self._rows * 1e6 for seconds in cpu)

    def _now(self) -> tuple[float, ...]:
        daemon, system = self._measured
        return time.perf_counter(), daemon.cpu_seconds, system.cpu_seconds, time.process_time()


def after_the_climb(daemon: Program, system: Program, in_flight: int, seconds: float) -> Steady:
    """Run with as many calls in flight at most; the default needs no setting."""
    # The climb takes a few seconds, at a part of the rate.
    rows = int((seconds + 3) * in_flight / SLEEP_S)
    spec: dict[str, Any] = {"systems": [{"target": system.address}]}
    if in_flight != 32:
        spec["max_concurrency"] = in_flight
    with BenchClient(daemon.address) as client:
        digest, _ = client.upload(make_examples(rows, 400))
        spec["datasets"] = [{"name": "made", "upload": digest}]
        steady, seen = Steady((daemon, system)), 0
        for event in client.watch(client.start(spec)):
            if event.WhichOneof("kind") != "row":
                continue
            seen += 1
            if steady.climb_s or event.row.calls_in_flight == in_flight:
                steady.count(1)
            if seen == rows:
                steady.end()
    return steady


def lines(all_in_flight: list[int], seconds: float) -> Iterator[list[str]]:
    """Measure, one line for each number of calls in flight."""
    # One loop for all: grpc's poller outlives the loops that asyncio.run closes, and complains.
    loop = asyncio.new_event_loop()
    for in_flight in all_in_flight:
        with (
            scratch() as home,
            programs(start_daemon(home), start_sleeper()) as (daemon, system),
        ):
            before = loop.run_until_complete(bare(system.address, in_flight, 2))
            steady = after_the_climb(daemon, system, in_flight, seconds)
            after = loop.run_until_complete(bare(system.address, in_flight, 2))
        ideal, transport = in_flight / SLEEP_S, (before + after) / 2
        yield [
            f"{in_flight}",
            f"{steady.climb_s:.1f} s",
            f"{steady.rate:,.0f}",
            f"{ideal:,.0f} ({steady.rate / ideal:.2f})",
            f"{transport:,.0f} ({transport / ideal:.2f})",
            f"{steady.rate / transport:.2f}",
            " + ".join(f"{each:.0f}" for each in steady.cpu_us),
            f"{0.9 * ideal * sum(steady.cpu_us) / 1e6:.2f}",
        ]


TITLES = [
    "in flight",
    "climb",
    "ours, rows/s",
    "ideal (ours)",
    "bare stream (of ideal)",
    "ours of bare",
    "CPU, us/row: daemon + system + client",
    "cores for 0.9",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--in-flight", default="8,16,32")
    parser.add_argument("--seconds", type=float, default=4.0)
    arguments = parser.parse_args()
    chosen = [int(number) for number in arguments.in_flight.split(",")]
    print(table(TITLES, list(lines(chosen, arguments.seconds))))


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve(Sleeper(), "127.0.0.1:0")
    else:
        main()
