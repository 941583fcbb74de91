"""What metrics cost: CPU time for each row of a daemon with metrics, against one without.

    python benchmarks/metrics_cost.py [--rows 2000] [--turns 15] [--control]

Two daemons and one echo system. Each turn gives both daemons the same run, one after the other,
and the other one first in the next turn; the daemon with metrics is read once in each turn, as
Prometheus would. A ratio is that of the two CPU times of one turn, so that what else the machine
does concerns both. With --control neither has metrics, which shows how far apart equals are.
"""

import argparse
import socket
import statistics
import urllib.request
from typing import Any

from parts import Program, make_examples, programs, scratch, start_daemon, start_echo, table

from cbench_client import BenchClient


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000)
    parser.add_argument("--size", type=int, default=400)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--control", action="store_true")
    args = parser.parse_args()
    if args.turns < 2:
        parser.error("--turns must be at least 2")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{free.getsockname()[1]}"
    flags = () if args.control else ("--metrics", place)
    examples = list(make_examples(args.rows, args.size))
    with (
        scratch() as one,
        scratch() as other,
        programs(start_daemon(one), start_daemon(other, flags=flags), start_echo("stream")) as all_,
    ):
        *daemons, echo = all_
        specs = [_spec(daemon, echo, examples) for daemon in daemons]
        costs: list[list[float]] = [[], []]
        # The first turn warms up, and does not count.
        for turn in range(args.turns + 1):
            for which in (0, 1) if turn % 2 else (1, 0):
                read = place if flags and which else ""
                costs[which].append(_cpu_seconds_of_a_run(daemons[which], specs[which], read))
    without, with_ = costs[0][1:], costs[1][1:]
    ratios = sorted(b / a for a, b in zip(without, with_, strict=True))
    low, _, high = statistics.quantiles(ratios, n=4)
    line = [
        *(f"{statistics.median(each) * 1e6 / args.rows:.0f}" for each in (without, with_)),
        f"{statistics.median(ratios):.3f}",
        f"{low:.3f} to {high:.3f}",
        f"{ratios[0]:.3f} to {ratios[-1]:.3f}",
    ]
    second = "without as well, us/row" if args.control else "with metrics, us/row"
    print(table(["without, us/row", second, "median ratio", "middle half", "all"], [line]))


def _spec(daemon: Program, echo: Program, examples: list[dict[str, Any]]) -> dict[str, Any]:
    with BenchClient(daemon.address) as client:
        digest, _ = client.upload(examples)
    return {
        "systems": [{"target": echo.address}],
        "datasets": [{"name": "bench", "upload": digest}],
    }


def _cpu_seconds_of_a_run(daemon: Program, spec: dict[str, Any], read: str) -> float:
    before = daemon.cpu_seconds
    with BenchClient(daemon.address) as client:
        list(client.watch(client.start(spec), include_rows=False))
    if read:
        with urllib.request.urlopen(f"http://{read}/metrics", timeout=30) as answer:
            answer.read()
    return daemon.cpu_seconds - before


if __name__ == "__main__":
    main()
