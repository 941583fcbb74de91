"""What being watched costs: rows per second and CPU per row with metrics and traces, on and off.

    python benchmarks/watching.py [--rows 4000] [--rounds 7] [--traces]

Daemons of each kind stand side by side and are given the same run in turn, in another order each
round, so that what else the machine does falls on all of them. The page of metrics is scraped
every five seconds. The daemon's CPU per row says more than rows per second wherever
the machine is not quiet.
"""

import argparse
import random
import statistics
import threading
import time
import urllib.request
from contextlib import ExitStack
from typing import Any

from parts import Program, make_examples, programs, scratch, start_daemon, start_echo, table

from cbench_client import BenchClient

IN_FLIGHT = 64
SCRAPE_EVERY_S = 5.0


def scrape(url: str, over: threading.Event) -> None:
    """Read the page again and again."""
    while not over.wait(SCRAPE_EVERY_S):
        with urllib.request.urlopen(url, timeout=30) as page:
            page.read()


def measure(daemon: Program, client: BenchClient, spec: dict[str, Any]) -> tuple[float, float]:
    """Return rows per second, and microseconds of the daemon's CPU per row."""
    cpu, started, rows = daemon.cpu_seconds, time.perf_counter(), 0
    for event in client.evaluate(spec):
        rows += event.WhichOneof("kind") == "row"
    return rows / (time.perf_counter() - started), (daemon.cpu_seconds - cpu) / rows * 1e6


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--traces", action="store_true", help="also with spans that go nowhere")
    args = parser.parse_args()
    port = 19_464
    kinds: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
        "off": ((), {}),
        "metrics": (("--metrics", f"127.0.0.1:{port}"), {}),
    }
    if args.traces:
        endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
        kinds["traces"] = ((), endpoint)
    figures: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
    over = threading.Event()
    with ExitStack() as stack:
        (echo,) = stack.enter_context(programs(start_echo("stream")))
        daemons = {}
        for kind, (flags, env) in kinds.items():
            home = stack.enter_context(scratch())
            (daemon,) = stack.enter_context(programs(start_daemon(home, flags=flags, env=env)))
            client = stack.enter_context(BenchClient(daemon.address))
            digest, _ = client.upload(make_examples(args.rows, 1000))
            spec = {
                "systems": [{"target": echo.address}],
                "datasets": [{"name": "bench", "upload": digest}],
                "evaluators": [{"name": "answer-quality"}],
                "replace_evaluators": True,
                "max_concurrency": IN_FLIGHT,
            }
            measure(
                daemon, client, {**spec, "datasets": [{**spec["datasets"][0], "max_examples": 50}]}
            )
            daemons[kind] = (daemon, client, spec)
        url = f"http://127.0.0.1:{port}/metrics"
        scraping = threading.Thread(target=scrape, args=(url, over), daemon=True)
        scraping.start()
        chance = random.Random(7)
        for _ in range(args.rounds):
            for kind in chance.sample([*kinds], len(kinds)):
                figures[kind].append(measure(*daemons[kind]))
        over.set()
        scraping.join()
    print(report(figures))


def report(figures: dict[str, list[tuple[float, float]]]) -> str:
    """Write medians, and each kind against `off`, round by round."""
    lines = []
    for kind, measured in figures.items():
        rates = [a / b for (a, _), (b, _) in zip(measured, figures["off"], strict=True)]
        cpus = [a / b for (_, a), (_, b) in zip(measured, figures["off"], strict=True)]
        lines.append(
            [
                kind,
                f"{statistics.median(rate for rate, _ in measured):,.0f}",
                f"{statistics.median(rates):.3f} ({min(rates):.2f}-{max(rates):.2f})",
                f"{statistics.median(cpu for _, cpu in measured):,.0f}",
                f"{statistics.median(cpus):.3f} ({min(cpus):.2f}-{max(cpus):.2f})",
            ]
        )
    return table(["watched", "rows/s", "of off", "CPU us/row", "of off"], lines)


if __name__ == "__main__":
    main()
