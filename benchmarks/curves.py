"""The cost of a row, by the number of rows and by the number of systems; both should be level.

    python benchmarks/curves.py [--rows 1000,10000,100000] [--systems 1,4,16,64] [--each 16000]

Every run is streamed to a client; its rows are scored, counted and stored. The
CPU time is the daemon's alone, the memory its peak, of a fresh daemon each.
"""

import argparse

from parts import make_examples, programs, scratch, start_daemon, start_echo, table

from cbench_client import BenchClient

_WARM_ROWS = 500


def measure(rows: int, systems: int) -> tuple[float, float]:
    """Return microseconds of the daemon's CPU per row, and its peak memory in MB."""
    with (
        scratch() as home,
        programs(start_daemon(home), start_echo("stream")) as (daemon, echo),
        BenchClient(daemon.address) as client,
    ):
        digest, _ = client.upload(make_examples(rows // systems, 400))
        spec = {
            "systems": [{"target": echo.address, "name": f"s{n}"} for n in range(systems)],
            "datasets": [{"name": "bench", "upload": digest}],
            "max_concurrency": max(1, 64 // systems),
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
    header = ["daemon CPU, us/row", "peak memory"]
    lines = []
    for rows in map(int, arguments.rows.split(",")):
        cpu, memory = measure(rows, 1)
        lines.append([f"{rows:,}", f"{cpu:,.0f}", f"{memory:.0f} MB"])
    print(table(["rows, one system", *header], lines), end="\n\n")
    lines = []
    for systems in map(int, arguments.systems.split(",")):
        cpu, memory = measure(arguments.each, systems)
        lines.append([f"{systems}", f"{cpu:,.0f}", f"{memory:.0f} MB"])
    print(table([f"systems, {arguments.each:,} rows in all", *header], lines))


if __name__ == "__main__":
    main()
