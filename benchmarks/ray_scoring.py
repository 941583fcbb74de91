"""Scoring of code and maths on a Ray cluster, against the programs of this machine.

    .venv-ray/bin/python benchmarks/ray_scoring.py [--pairs 300] [--turns 5] [--workers 2]

After `python3 scripts/setup_venv.py ray`. The same pairs are scored in turn by the local pool and
by a Ray cluster of this machine's own with as many workers, through the `Scoring` of a daemon. A
figure is the median of the turns. Aim: at least 0.8 of the local pool per core.
"""

import argparse
import asyncio
import statistics
import time
from collections.abc import Callable
from typing import Any

from parts import table

from cbench_server.cluster.workers import ClusterWorkers
from cbench_server.evaluators import CodeExecution, MathEquivalence
from cbench_server.scoring.placement import Scoring
from cbench_server.scoring.workers import WorkerPool
from cbench_server.types import Evaluator, Example

Pair = tuple[Example, Example]
AT_ONCE = 64


def program(number: int) -> Pair:
    """Return a program with two tests."""
    tests = [f"assert add({number}, 2) == {number + 2}", "assert add(-1, 1) == 0"]
    return {"test_list": tests}, {"response": "def add(a, b):\n    return a + b\n"}


def equation(number: int) -> Pair:
    """Return two forms of one expression, which only algebra finds equal."""
    return (
        {"answer": rf"\frac{{x^2 - {number * number}}}{{x - {number}}}"},
        {"response": rf"The answer is $\boxed{{x + {number}}}$."},
    )


KINDS: dict[str, tuple[Callable[[], Evaluator], Callable[[int], Pair]]] = {
    "code-execution": (CodeExecution, program),
    "math-equivalence": (MathEquivalence, equation),
}


async def rate(scoring: Scoring, evaluator: Evaluator, pairs: list[Pair]) -> float:
    """Return the pairs scored per second."""
    permits = asyncio.Semaphore(AT_ONCE)

    async def one(pair: Pair) -> Any:
        async with permits:
            row = await scoring.score_row([evaluator], *pair)
            assert not row.failures, row.failures
            return row.scores

    began = time.perf_counter()
    scores = await asyncio.gather(*map(one, pairs))
    seconds = time.perf_counter() - began
    assert all(1.0 in each.values() for each in scores), scores[:3]
    return len(pairs) / seconds


async def measure(args: argparse.Namespace) -> None:
    """Measure in turns, and print a table."""
    cluster = ClusterWorkers("local", args.workers, policy="strict")
    await cluster.ready(args.workers)
    engines = {"local": Scoring(WorkerPool(args.workers)), "ray": Scoring(cluster)}
    lines = []
    for name, (make, pair) in KINDS.items():
        found: dict[str, list[float]] = {engine: [] for engine in engines}
        for turn in range(args.turns + 1):
            pairs = [pair(turn * args.pairs + number + 2) for number in range(args.pairs)]
            for engine, scoring in engines.items():
                measured = await rate(scoring, make(), pairs)
                # The first turn starts programs and loads what they import.
                if turn:
                    found[engine].append(measured)
        medians = {engine: statistics.median(each) for engine, each in found.items()}
        ratios = [ray / local for ray, local in zip(found["ray"], found["local"], strict=True)]
        lines.append(
            [
                name,
                f"{medians['local']:.0f}",
                f"{medians['ray']:.0f}",
                f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})",
            ]
        )
    for scoring in engines.values():
        await scoring.close()
    print(table(["evaluator", "local pairs/s", "ray pairs/s", "ray / local"], lines))


def main() -> None:
    """Read the flags and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=300)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
