"""Rescoring a stored run, against scoring the same pairs and nothing else.

    python benchmarks/rescoring.py [--rows 10000] [--size 400] [--turns 3]

A run of so many rows is made once. Then, in turn: the evaluator's `score` over the pairs in
a loop, and `Rescore` on the daemon, from the request to the end of the run, every row of which is
read, scored and stored again. A figure is the median of the turns. CPU time is that of the
scoring loop, and that of the daemon; on a busy machine it is the one to trust.
"""

import argparse
import statistics
import time

from echo_system import answer
from parts import make_examples, programs, scratch, start_daemon, start_echo, table

from cbench_client import BenchClient
from cbench_server.evaluators import AnswerQuality


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--size", type=int, default=400)
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args()
    examples = list(make_examples(args.rows, args.size))
    pairs = [(example, answer(example)) for example in examples]
    evaluator = AnswerQuality()
    alone: list[float] = []
    rescored: list[float] = []
    alone_cpu: list[float] = []
    cpu: list[float] = []
    with (
        scratch() as home,
        programs(start_daemon(home), start_echo("stream")) as (daemon, echo),
        BenchClient(daemon.address) as client,
    ):
        digest, _ = client.upload(examples)
        spec = {
            "systems": [{"target": echo.address}],
            "datasets": [{"name": "bench", "upload": digest}],
            "evaluators": [{"name": "answer-quality"}],
            "replace_evaluators": True,
        }
        run_id = client.start(spec)
        list(client.watch(run_id, include_rows=False))
        for _ in range(args.turns):
            before, started = time.process_time(), time.perf_counter()
            for original, processed in pairs:
                evaluator.score(original, processed)
            alone.append(args.rows / (time.perf_counter() - started))
            alone_cpu.append((time.process_time() - before) / args.rows * 1e6)
            before, started = daemon.cpu_seconds, time.perf_counter()
            new_run = client.rescore(run_id).run_id
            list(client.watch(new_run, include_rows=False))
            rescored.append(args.rows / (time.perf_counter() - started))
            cpu.append((daemon.cpu_seconds - before) / args.rows * 1e6)
    one, other = statistics.median(alone), statistics.median(rescored)
    lines = [
        ["scoring alone", f"{one:,.0f}", "1.00", f"{statistics.median(alone_cpu):.0f}"],
        ["rescoring", f"{other:,.0f}", f"{other / one:.2f}", f"{statistics.median(cpu):.0f}"],
    ]
    print(table(["", "rows/s", "of scoring alone", "CPU, us/row"], lines))


if __name__ == "__main__":
    main()
