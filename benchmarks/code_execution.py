"""CPU time and rate of judged programs, beside plain launches or another checkout.

    python benchmarks/code_execution.py [--programs 200] [--rounds 5] [--threads 2] [--beside PATH]

Every kind takes its turn in short rounds, each in a fresh process, so that
other work on the machine slows all of them. CPU time is that of every process
of a round: the evaluator's, the sandbox's and the programs' own, without what
importing and starting take. A plain launch has no isolation, no tests and no
verdict; a bare one does not even look for installed packages. `--beside` names
another checkout (with its .venv), whose sandbox judges the same programs.
"""

import argparse
import asyncio
import json
import resource
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from checkouts import HERE, run_in

ORIGINAL = {
    "context": 'def add(a, b):\n    """Add two numbers."""\n',
    "test": "def check(c):\n    assert c(1, 2) == 3\n    assert c(-1, 1) == 0\n",
    "entry_point": "add",
}
RIGHT = {"response": "    return a + b\n"}


def cpu_seconds() -> float:
    """Return the CPU time of this process and of all that it, or its children, waited for."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, kinds))


def judge(programs: int, threads: int) -> dict[str, Any]:
    """Judge programs in the sandbox of the checkout whose interpreter runs this."""
    from cbench_server.evaluators import CodeExecution
    from cbench_server.sandbox.client import shared_sandbox

    evaluator, sandbox = CodeExecution(), shared_sandbox("strict")

    def one(_: int) -> None:
        assert evaluator.score(ORIGINAL, RIGHT) == {"pass_at_1": 1.0}

    def several(count: int) -> float:
        # Closing the sandbox waits for its processes: only then is their time known.
        began = cpu_seconds()
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(one, range(count)))
        sandbox.close()
        return cpu_seconds() - began

    said = asyncio.run(evaluator.assess(ORIGINAL, RIGHT))
    sandbox.close()
    start = several(threads)
    began = time.perf_counter()
    cpu = several(programs + threads) - start
    return {
        "cpu": cpu / programs,
        "wall": (time.perf_counter() - began) / programs,
        "tier": said.details["sandbox_tier"],
    }


def launch(programs: int, threads: int, *flags: str) -> dict[str, Any]:
    """Launch an interpreter that does nothing, so many times."""

    def one(_: int) -> None:
        subprocess.run([sys.executable, *flags, "-c", "pass"], check=True)

    began, used = time.perf_counter(), cpu_seconds()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(one, range(programs)))
    return {
        "cpu": (cpu_seconds() - used) / programs,
        "wall": (time.perf_counter() - began) / programs,
        "tier": "",
    }


ROUNDS = {
    "sandbox": judge,
    "plain launch": launch,
    "bare launch": lambda programs, threads: launch(programs, threads, "-I", "-S"),
}


def run_round(kind: str, checkout: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """Run one round of a kind with the interpreter and the code of a checkout."""
    numbers = ["--programs", str(arguments.programs), "--threads", str(arguments.threads)]
    found: dict[str, Any] = run_in(checkout, Path(__file__).name, "--round", kind, *numbers)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=200, help="in each round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--beside", type=Path, help="another checkout to compare with")
    parser.add_argument("--round", choices=ROUNDS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.round:
        print(json.dumps(ROUNDS[arguments.round](arguments.programs, arguments.threads)))
        return
    kinds = {name: (name, HERE) for name in ROUNDS}
    if arguments.beside:
        kinds = {"sandbox": ("sandbox", HERE), "beside": ("sandbox", arguments.beside)}
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in kinds}
    for _ in range(arguments.rounds):
        for name, (kind, checkout) in kinds.items():
            found[name].append(run_round(kind, checkout, arguments))
    print(f"tier: {found['sandbox'][0]['tier']}, {arguments.threads} threads")
    print(f"{'':14} {'CPU ms':>8} {'least':>8} {'per s':>8} {'sandbox: CPU of it':>20}")
    ours = statistics.median(each["cpu"] for each in found["sandbox"])
    for name, rounds in found.items():
        cpu = statistics.median(each["cpu"] for each in rounds)
        least, rate = min(each["cpu"] for each in rounds), 1 / min(each["wall"] for each in rounds)
        print(f"{name:14} {cpu * 1e3:8.2f} {least * 1e3:8.2f} {rate:8.1f} {ours / cpu:20.2f}")


if __name__ == "__main__":
    main()
