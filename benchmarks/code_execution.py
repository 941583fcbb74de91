"""Programs per second that the sandbox judges, beside plain launches of the interpreter.

    python benchmarks/code_execution.py [--seconds 5] [--threads 2]

All take turns in short rounds, so that other work of the machine slows
all. A plain launch has no isolation, no tests and no verdict; a bare one does
not even look for installed packages.
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from cbench_server.evaluators import CodeExecution

ORIGINAL = {
    "context": 'def add(a, b):\n    """Add two numbers."""\n',
    "test": "def check(c):\n    assert c(1, 2) == 3\n    assert c(-1, 1) == 0\n",
    "entry_point": "add",
}
RIGHT = {"response": "    return a + b\n"}
ROUND_S = 0.5


def judge(evaluator: CodeExecution) -> None:
    """Judge one program."""
    assert evaluator.score(ORIGINAL, RIGHT) == {"pass_at_1": 1.0}


def launch(*flags: str) -> None:
    """Launch an interpreter and wait for its end."""
    subprocess.run([sys.executable, *flags, "-c", "pass"], check=True)


def measure(pool: ThreadPoolExecutor, threads: int, work: Callable[[], None]) -> list[float]:
    """Do work in all threads for one round and return how long each piece took."""
    end = time.perf_counter() + ROUND_S

    def one_thread() -> list[float]:
        took = []
        while (began := time.perf_counter()) < end:
            work()
            took.append(time.perf_counter() - began)
        return took

    return [each for future in [pool.submit(one_thread) for _ in range(threads)]
            for each in future.result()]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="for each kind")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    evaluator = CodeExecution()
    judge(evaluator)
    kinds: dict[str, Callable[[], None]] = {
        "sandbox": lambda: judge(evaluator),
        "plain launch": launch,
        "bare launch": lambda: launch("-I", "-S"),
    }
    took: dict[str, list[float]] = {name: [] for name in kinds}
    spent = dict.fromkeys(kinds, 0.0)
    with ThreadPoolExecutor(arguments.threads) as pool:
        while min(spent.values()) < arguments.seconds:
            for name, work in kinds.items():
                began = time.perf_counter()
                took[name] += measure(pool, arguments.threads, work)
                spent[name] += time.perf_counter() - began
    rates = {name: len(times) / spent[name] for name, times in took.items()}
    print(f"{'':14} {'a second':>9} {'median ms':>10} {'least ms':>9} {'sandbox is':>11}")
    for name, times in took.items():
        median, ratio = statistics.median(times), rates["sandbox"] / rates[name]
        figures = f"{rates[name]:9.1f} {median * 1e3:10.2f} {min(times) * 1e3:9.2f} {ratio:10.2f}x"
        print(f"{name:14} {figures}")


if __name__ == "__main__":
    main()
