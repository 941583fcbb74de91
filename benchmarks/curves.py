"""The cost of a row, by the number of rows and by the number of systems; both should be level.

    python benchmarks/curves.py [--rows 1000,10000,100000] [--systems 1,4,16,64] [--each 16000]

Every run is streamed to a client; its rows are scored, counted and stored. The
CPU time is the daemon's alone, the memory its peak, of a fresh daemon each.

A message carries the calls of one system that may start together, and costs
the same however many they are. So systems are measured in two ways: with as
many calls in flight for each system, which shows what a system costs, and
with as many for all of them together, which shows what a message costs too.
"""

import argparse

from parts import make_examples, programs, scratch, start_daemon, start_echo, table

from cbench_client import BenchClient

_WARM_ROWS = 500
_PER_SYSTEM, _IN_ALL = 16, 64


def measure(rows: int, systems: int, in_flight: int) -> tuple[float, float]:
    """Return microseconds of the daemon's CPU per row, and its peak memory in MB.

    `in_flight` is how many calls each system has at once.
    """
    with (
        scratch() as home,
        programs(start_daemon(home), start_echo("stream")) as (daemon, echo),
        BenchClient(daemon.address) as client,
    ):
        digest, _ = client.upload(make_examples(rows // systems, 400))
        spec = {
            "systems": [{"target": echo.address, "name": f"s{n}"} for n in range(systems)],
            "datasets": [{"name": "bench", "upload": digest}],
            "max_concurrency": in_flight,
        }
        warm = {
            "systems": [{"target": echo.address}],
            "datasets": [{"name": "bench", "upload": digest, "max_examples": _WARM_ROWS}],
        }
        for _ in client.evaluate(warm):
            pass
        before, seen = daemon.cpu_seconds, 0
        for event in client.evaluate(spec):
            seen += event.WhichOneof("kind") == "row"
        assert seen == rows // systems * systems
        return (daemon.cpu_seconds - before) / seen * 1e6, daemon.memory_mb("VmHWM")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default="1000,10000,100000")
    parser.add_argument("--systems", default="1,4,16,64")
    parser.add_argument("--each", type=int, default=16_000, help="rows of each run over systems")
    arguments = parser.parse_args()
    lines = []
    for rows in _numbers(arguments.rows):
        lines.append([f"{rows:,}", *_cells(*measure(rows, 1, _IN_ALL))])
    if lines:
        print(table(["rows, one system", "daemon CPU, us/row", "peak memory"], lines), end="\n\n")
    lines = []
    for systems in _numbers(arguments.systems):
        per_system = _cells(*measure(arguments.each, systems, _PER_SYSTEM))
        in_all = _cells(*measure(arguments.each, systems, max(1, _IN_ALL // systems)))
        lines.append([f"{systems}", *per_system, *in_all])
    ways = [f"{_PER_SYSTEM} in flight each", f"{_IN_ALL} in flight in all"]
    header = [f"{way}{what}" for way in ways for what in (", us/row", ", peak memory")]
    print(table([f"systems, {arguments.each:,} rows in all", *header], lines))


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number]


def _cells(cpu: float, memory: float) -> list[str]:
    return [f"{cpu:,.0f}", f"{memory:.0f} MB"]


if __name__ == "__main__":
    main()
