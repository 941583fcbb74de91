"""The program that compares symbols: hostile answers, threads, and being killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from cbench_server.evaluators import MathEquivalence
from cbench_server.evaluators.math.program import MathPrograms


@pytest.fixture(scope="module")
def programs() -> Iterator[MathPrograms]:
    kept = MathPrograms(size=2, cpu_seconds=0.5)
    yield kept
    kept.close()


def children() -> set[int]:
    """The processes that this one has started and that still run."""
    tasks = Path("/proc/self/task")
    if not tasks.exists():
        pytest.skip("needs /proc")
    found: set[int] = set()
    for task in tasks.iterdir():
        with suppress(FileNotFoundError):  # A thread that has ended meanwhile.
            found |= {int(pid) for pid in (task / "children").read_text().split()}
    return found


HOSTILE = {
    "tower": "9^{9^{9^{9}}}",
    "factorial": "99999999999!",
    "factorials": "((((((999!)!)!)!)!)!)",
    "sum": r"\sum_{n=1}^{10^{9}} \frac{1}{n}",
    "product": r"\prod_{k=1}^{100000000} k",
    "binomial": r"\binom{10^{8}}{5\cdot 10^{7}}",
    "parentheses": "(" * 400 + "1" + ")" * 400,
    "powers": "x^{" * 100 + "x" + "}" * 100,
    "macro": r"\def\a{\a\a}\a",
    "python": "__import__('os').system('true')",
    "memory": r"\begin{pmatrix} 10^{99999999} & 1 \end{pmatrix} \cdot 10^{10^{12}}",
}


@pytest.mark.parametrize("answer", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_answer_is_not_equal_and_harms_no_other(
    programs: MathPrograms, answer: str
) -> None:
    assert not programs.compare("5", answer).equal
    assert programs.compare("x+1", "1+x").equal


def test_a_hostile_reference_is_not_equal_either(programs: MathPrograms) -> None:
    assert not programs.compare(HOSTILE["tower"], "x+1").equal


def test_a_limit_that_strikes_is_told(programs: MathPrograms) -> None:
    verdict = programs.compare("5", HOSTILE["tower"])
    assert verdict.reason == "not compared within 0.5 s of processor time"


@pytest.mark.parametrize(
    "response",
    [
        "9**9**9**9",
        "{" * 100_000,
        "{" * 50_000 + "}" * 50_000,
        r"\boxed{" * 20_000,
        r"\frac{1}{" * 500 + "1" + "}" * 500,
        "$" * 100_000,
        "the answer is " * 7_000,
        "answer" + " " * 100_000 + "is",
        "#### " * 20_000,
        "=" * 100_000,
        "9" * 100_000,
        "1," * 50_000,
        "1:" * 50_000,
        r"\text{" * 20_000,
        "A" * 100_000,
        "a " * 50_000,
        "\x00" * 1_000,
        "\ud800 5",
    ],
    ids=lambda response: ascii(response[:12]),
)
def test_hostile_text_is_scored_in_any_thread(response: str) -> None:
    with ThreadPoolExecutor(1) as pool:
        scored = pool.submit(MathEquivalence().score, {"answer": "7"}, {"response": response})
        assert scored.result() == {"math_equiv": 0.0}


def test_threads_get_the_verdicts_that_one_thread_gets() -> None:
    pairs = [("x+1", f"{number}+x") for number in range(4)] * 4
    expected = [float(given == "1+x") for _, given in pairs]

    def score(pair: tuple[str, str]) -> float:
        return MathEquivalence().score({"answer": pair[0]}, {"response": pair[1]})["math_equiv"]

    with ThreadPoolExecutor(8) as pool:
        assert [*pool.map(score, pairs)] == expected


def test_a_program_that_was_killed_is_replaced(programs: MathPrograms) -> None:
    before = children()
    assert programs.compare("x+1", "1+x").equal
    for pid in children() - before:
        os.kill(pid, signal.SIGKILL)
    assert programs.compare("x+1", "1+x").equal


def test_closing_leaves_no_process_behind() -> None:
    before = children()
    programs = MathPrograms()
    programs.compare("x+1", "1+x")
    assert children() > before
    programs.close()
    assert children() == before


def test_a_forked_process_has_programs_of_its_own() -> None:
    program = (
        "import os\n"
        "from cbench_server.evaluators import MathEquivalence\n"
        "def score(): return MathEquivalence().score({'answer': 'x+1'}, {'response': '1+x'})\n"
        "assert score() == {'math_equiv': 1.0}\n"
        "child = os.fork()\n"
        "assert score() == {'math_equiv': 1.0}\n"
        "if child: assert os.waitpid(child, 0)[1] == 0\n"
    )
    finished = subprocess.run([sys.executable, "-c", program], timeout=100, capture_output=True)
    assert (finished.returncode, finished.stderr) == (0, b"")


def test_scoring_numbers_imports_no_algebra() -> None:
    program = (
        "import sys\n"
        "from cbench_server.evaluators import MathEquivalence\n"
        "MathEquivalence().score({'answer': '18'}, {'response': 'The answer is $18.'})\n"
        "sys.exit('sympy' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == 0
