"""`evaluate()` against a plain loop that does the same and nothing else.

    python benchmarks/in_process.py [--rows 4000] [--size 400] [--turns 3]

(b) is the loop of benchmarks/orchestration.py: the same function, AnswerQuality, two
tiktoken counts, in one thread. Where the package context-bench is installed, its own loop
is measured too, with our AnswerQuality, since its wheel has no evaluators. All take turns, so
that a slow minute hits each; a figure is the median of the turns.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

from echo_system import answer
from orchestration import in_process
from parts import make_examples, table

from cbench_server import evaluate
from cbench_server.evaluators import AnswerQuality


class Echo:
    """The echo system, in this process."""

    name = "echo"
    version = "1"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return answer(example)


def ours(examples: list[dict[str, Any]], workers: int) -> float:
    """Rows per second of `evaluate()`."""
    started = time.perf_counter()
    result = evaluate(
        [Echo()], examples, [AnswerQuality()], [], progress=False, max_workers=workers
    )
    elapsed = time.perf_counter() - started
    assert len(result.rows) == len(examples)
    return len(examples) / elapsed


def context_bench(examples: list[dict[str, Any]]) -> float | None:
    """Rows per second of context-bench's own loop, if it is installed."""
    try:
        from context_bench import evaluate as theirs
    except ImportError:
        return None
    started = time.perf_counter()
    theirs(systems=[Echo()], dataset=examples, evaluators=[AnswerQuality()], metrics=[])
    return len(examples) / (time.perf_counter() - started)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--size", type=int, default=400)
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args()
    examples = list(make_examples(args.rows, args.size))
    ways: dict[str, Callable[[], float | None]] = {
        "(b) plain loop": lambda: in_process(examples, 1),
        "evaluate(), 1 worker": lambda: ours(examples, 1),
        "evaluate(), 32 workers": lambda: ours(examples, 32),
        "context-bench": lambda: context_bench(examples),
    }
    ours(examples[:100], 1)
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(args.turns):
        for name, measure in ways.items():
            if (rate := measure()) is not None:
                rates[name].append(rate)
    baseline = statistics.median(rates["(b) plain loop"])
    lines = [
        [name, f"{statistics.median(each):,.0f}", f"{statistics.median(each) / baseline:.2f}"]
        for name, each in rates.items()
        if each
    ]
    print(table(["", "rows/s", "of (b)"], lines))


if __name__ == "__main__":
    main()
