"""MathEquivalence: which answers are the same, and that comparing them does no harm."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cbench_client import BenchClient
from cbench_server.evaluators import EVALUATORS, MathEquivalence
from cbench_server.scoring.placement import Scoring
from cbench_server.scoring.recipe import recipe_of
from cbench_server.types import Evaluator
from tests.e2e.processes import DaemonProcess
from tests.fixtures import preloaded


def score(gold: object, response: object) -> float:
    return MathEquivalence().score({"answer": gold}, {"response": response})["math_equiv"]


@pytest.mark.parametrize(
    ("gold", "response", "expected"),
    [
        (r"\frac{1}{2}", "0.5", 1),
        ("42", r"The answer is $\boxed{42}$.", 1),
        ("42", "The answer is 42.", 1),
        ("18", "#### 18", 1),
        ("1,000", "1000", 1),
        ("50%", "0.5", 1),
        ("50", "50%", 1),
        ("5", "$5", 1),
        ("1/2", r"\dfrac{1}{2}", 1),
        (r"-\frac{1}{2}", "-0.5", 1),
        ("3", r"First \boxed{1} and then \boxed{3}", 1),
        ("3", r"\boxed{1} \boxed{3}", 1),
        (r"\boxed{3}", "3", 1),
        ("2/4", "1/2", 1),
        ("1,2", "12", 0),
        ("inf", r"\infty", 1),
        ("nan", "nan", 1),
        ("3.14159265", "3.14159266", 1),
        ("x+1", "1+x", 1),
        ("10", "10 dollars", 1),
        (r"\quad 5", "5", 1),
        (10, "10", 1),
        ("10", 10.0, 1),
        ("", "anything", 1),
        ("5", "", 0),
        ("5", None, 0),
        ("none", None, 0),
    ],
)
def test_the_known_examples_are_scored(gold: object, response: object, expected: float) -> None:
    assert score(gold, response) == expected


@pytest.mark.parametrize(
    ("gold", "response"),
    [
        ("1000", "1 000"),
        ("1000.99", "1,000.99€"),
        ("1234567", "1.234.567"),
        ("1234567", "12,34,567"),
        ("2.74", "2,74"),
        ("0.4", ".4"),
        ("7", "007"),
        ("1.5", "1 1/2"),
        ("918.5", r"918\frac{1}{2}"),
        ("3.5", "3½"),
        ("-5", "−5"),
        ("-5", "-$5"),
        ("1e10", "10,000,000,000"),
        (r"1.2\times10^3", "1200"),
        (r"10\%", "10"),
        (r"10\%", "0.1"),
        (r"33\frac13\%", r"33\frac{1}{3}"),
        (r"10\text{ cm}^2", "10"),
        ("10 square units", "10"),
        ("5 cm", "5 centimeters"),
        ("90^\\circ", "90 degrees"),
        ("90^\\circ", "90°"),
        (r"\$1{,}200.50", "1200.5"),
        ("7:30", "7:30 PM"),
        ("1/3", "0.333333"),
        ("2/3", "0.66667"),
        (r"\sqrt{2}", "1.41421"),
        (r"40\pi", "125.664"),
        (r"(\frac{3}{5},\frac{8}{3}]", "(0.6,2.6667]"),
        (r"\frac13, \sqrt3, \pi", "1/3, 1.73205, 3.14159"),
    ],
)
def test_numbers_are_the_same_however_they_are_written(gold: str, response: str) -> None:
    assert score(gold, response) == 1.0


@pytest.mark.parametrize(
    ("gold", "response"),
    [
        ("2", "-2"),
        ("100", "1000"),
        ("12", "1 2"),
        ("5", "5.001"),
        ("1000000", "1000001"),
        ("123456.7", "123456.8"),
        ("0.00000001", "0.00000002"),
        ("0", "0.0000001"),
        ("1/3", "0.33"),
        (r"\sqrt{2}", "1.4"),
        (r"(\frac{3}{5},\frac{8}{3}]", "(0.6,2.6]"),
        ("0.28", "28"),
        ("5 hours", "5 minutes"),
        ("7:30", "7:45"),
        ("7:30 am", "7:30 pm"),
        ("4210_7", "4210_8"),
        (r"\frac{2}{3}", r"\frac{3}{2}"),
        ("10^{100}", "10^{100}+1"),
        ("120", "5"),
        ("5!", "5"),
        ("1", "+".join(["1"] * 2001)),
        ("1", r"\frac{1}{" * 500 + "1" + "}" * 500),
        ("x+1", "x-1"),
        ("2x+1", "2y+1"),
        ("x=1", "y=1"),
        ("k = 45, n = 2", r"\boxed{2}"),
        ("(1,2)", "(2,1)"),
        ("[1,2]", "(1,2)"),
        ("x<5", "x<=5"),
        ("x^2+y^2=4", "The circle is $x^2+y^2=5$."),
        ("1,3,5", "1, 3, 5, 7"),
        (r"\{2,3,5\}", r"\{2,3\}"),
        ("2+3i", "3+2i"),
        (r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", r"\begin{pmatrix} 2 \\ 1 \end{pmatrix}"),
        ("Evelyn", r"\boxed{\text{Carla}}"),
        ("listen", "silent"),
        ("June 20", "June 21"),
        (r"\infty", r"-\infty"),
    ],
)
def test_plainly_different_answers_are_never_equal(gold: str, response: str) -> None:
    assert score(gold, response) == 0.0


@pytest.mark.parametrize(
    ("gold", "response"),
    [
        ("x^2+2x+1", "(x+1)^2"),
        ("x^2", "x**2"),
        (r"2\sqrt{2}", r"\sqrt{8}"),
        (r"\frac{\sqrt{3}}{2}", "sqrt(3)/2"),
        (r"\frac{\pi}{2}", "pi/2"),
        (r"\frac{1}{\sqrt{2}}", r"\frac{\sqrt{2}}{2}"),
        (r"\tfrac23+\frac1{72}", r"\dfrac{2}{3}+\frac{1}{72}"),
        ("120", "5!"),
        ("1024", "2^{10}"),
        (r"\sin^2 x", r"1-\cos^2 x"),
        ("1+2i", "i(2-i)"),
        ("(1, 2)", r"\left(1,\ 2\right)"),
        (r"[1/2, \infty)", r"x \in [0.5, \infty)"),
        ("[1,3)", r"1\le x<3"),
        (r"(-\infty,2)\cup(3,\infty)", r"(3,\infty)\cup(-\infty,2)"),
        (r"\{1,2\}", "2, 1"),
        (r"7, -2, \text{ and } -5", "-5,-2,7"),
        ("4,6,14,15", "The integers are 4, 6, 14, and 15."),
        ("(2, 2), (6, 2)", r"$\boxed{(2, 2)} \quad \text{and} \quad \boxed{(6, 2)}$"),
        (r"\pm 3", "3, -3"),
        ("5", "x = 5"),
        ("y=2x+3", "2x+3"),
        ("y=2x+3", "2x+3=y"),
        ("2x+3y=6", "4x+6y=12"),
        ("x=2,y=3", "(2,3)"),
        (r"\frac{\sqrt{3}}{3}", r"\frac{\sqrt{3}}{3} \approx 0.577"),
        (r"\begin{pmatrix}0.5&1\end{pmatrix}", r"\begin{bmatrix}\frac12 & 1\end{bmatrix}"),
        (r"3\sqrt{2}\text{ cm}", r"3\sqrt{2}"),
        (r"3\sqrt{2}", r"3\sqrt{2} units"),
        (r"\text{(C)}", r"\boxed{C}"),
        (r"\text{Evelyn}", "The answer is Evelyn."),
        ("No solution", r"\boxed{\text{no solution}}"),
        (r"\text{June 20}", "The answer is June 20."),
        (r"\emptyset", r"\varnothing"),
    ],
)
def test_expressions_are_the_same_however_they_are_written(gold: str, response: str) -> None:
    assert score(gold, response) == 1.0


def test_any_of_several_references_will_do() -> None:
    original = {"answers": ["1/3", r"\frac{1}{2}"], "answer": "9"}
    assert MathEquivalence().score(original, {"response": "0.5"}) == {"math_equiv": 1.0}
    assert MathEquivalence().score(original, {"response": "9"}) == {"math_equiv": 0.0}


@pytest.mark.parametrize("original", [{}, {"answer": None}, {"answers": []}])
def test_an_example_without_an_answer_gives_no_scores(original: dict[str, Any]) -> None:
    assert MathEquivalence().score(original, {"response": "5"}) == {}


def test_thinking_is_left_out_unless_it_is_asked_for() -> None:
    pair = {"answer": "20"}, {"response": r"<think>\boxed{20}</think>The answer is 18."}
    assert MathEquivalence().score(*pair) == {"math_equiv": 0.0}
    assert MathEquivalence(strip_thinking=False).score(*pair) == {"math_equiv": 1.0}


def test_the_details_say_what_was_compared_and_how() -> None:
    assessment = MathEquivalence().assess({"answer": "5"}, {"response": "So it is $x^2$."})
    assert assessment.scores == {"math_equiv": 0.0}
    assert assessment.details == {
        "extracted": "x^2",
        "found_by": "last formula",
        "decided_by": "symbols",
    }


def test_an_answer_too_long_to_compare_says_so() -> None:
    assessment = MathEquivalence().assess({"answer": "x"}, {"response": r"\boxed{" + "{" * 100_000})
    assert assessment.scores == {"math_equiv": 0.0}
    assert assessment.details["reason"] == "more than 1,000 characters"
    assert len(assessment.details["extracted"]) <= 200


async def test_a_worker_gives_the_same_scores_and_details() -> None:
    scoring = Scoring()
    evaluator = MathEquivalence()
    assert recipe_of(evaluator) is not None
    pairs = [
        ({"answer": "18"}, {"response": "The answer is 18."}),
        ({"answer": "x+1"}, {"response": "1+x"}),
        ({"answer": "x+1"}, {"response": "2+x"}),
    ]
    try:
        for pair in pairs:
            assert await scoring.assess(evaluator, *pair) == evaluator.assess(*pair)
    finally:
        await scoring.close()


@pytest.mark.parametrize("response", ["1+x", "2+x", "The answer is 5."])
def test_the_daemon_and_the_command_line_say_what_python_says(
    tmp_path: Path, response: str
) -> None:
    original, processed = {"answer": "x+1"}, {"response": response}
    expected = MathEquivalence().assess(original, processed)
    with DaemonProcess(tmp_path / "home") as daemon, BenchClient(daemon.address) as client:
        scored = client.score("math-equivalence", original, processed)
    assert scored.scores == expected.scores
    assert scored.details == expected.details
    (tmp_path / "original.json").write_text(json.dumps(original))
    (tmp_path / "processed.json").write_text(json.dumps(processed))
    command = [sys.executable, "-m", "cbench_server.cli", "score", "--evaluator"]
    finished = preloaded.run(
        [*command, "math-equivalence", "original.json", "processed.json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert json.loads(finished.stdout) == expected.scores


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
_EXAMPLES = st.dictionaries(st.sampled_from(["answer", "answers", "response"]), _VALUES)


@settings(max_examples=60, deadline=None)
@given(_EXAMPLES, _EXAMPLES)
def test_any_example_is_scored_and_twice_alike(
    original: dict[str, Any], processed: dict[str, Any]
) -> None:
    found = MathEquivalence().score(original, processed)
    assert found in ({}, {"math_equiv": 0.0}, {"math_equiv": 1.0})
    assert MathEquivalence().score(original, processed) == found


_PIECES = [r"\boxed{", "}", "{", "$", "####", "The answer is ", "=", "1/2", r"\frac", "3", ",", "("]
_PIECES += [
    ")",
    "%",
    "^",
    r"\text{cm}",
    "x",
    "\n",
    " and ",
    r"\left",
    "-",
    ".",
    "5:30",
    r"\(",
    "A: ",
]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(_PIECES), max_size=12).map("".join))
def test_any_notation_equals_itself_spaced_or_not(text: str) -> None:
    assert score(text, text) == 1.0
    assert score(text, f" {text}\n") == 1.0


@given(st.integers(-(10**12), 10**12), st.integers(-(10**12), 10**12))
def test_integers_are_equal_only_to_themselves(gold: int, given_number: int) -> None:
    assert score(str(gold), f"The answer is {gold:,}.") == 1.0
    assert score(str(gold), f"So it is {given_number:,}.") == float(gold == given_number)


def test_it_is_a_registered_evaluator_that_describes_its_scores() -> None:
    evaluator = MathEquivalence()
    assert EVALUATORS["math-equivalence"] is MathEquivalence
    assert isinstance(evaluator, Evaluator)
    announced = [info.name for info in evaluator.score_infos]
    assert announced == [*evaluator.score({"answer": "1"}, {"response": "1"})]


@pytest.mark.parametrize(
    ("gold", "given"),
    [
        ("5\\text{ cm}", "5\\text{ m}"),
        ("5 s", "5 h"),
        ("5\\text{ L}", "5\\text{ mL}"),
        ("5\\text{ cm}^2", "5\\text{ m}^2"),
        ("5 square feet", "5 square meters"),
        ("25\\text{ square units}", "25\\text{ cubic units}"),
        ("12:00\\text{ a.m.}", "12:00\\text{ p.m.}"),
        ("5\\text{ km/h}", "5\\text{ m/s}"),
        ("90^\\circ", "90\\%"),
        ("\\$50", "50\\%"),
        ("5 xy", "5"),
    ],
)
def test_what_differs_in_its_unit_is_not_equal_either_way(gold: str, given: str) -> None:
    evaluator = MathEquivalence()
    for one, other in ((gold, given), (given, gold)):
        boxed = {"response": f"\\boxed{{{other}}}"}
        assert evaluator.score({"answer": one}, boxed) == {"math_equiv": 0.0}


@pytest.mark.parametrize(
    ("gold", "given"),
    [
        ("5 m", "5 meters"),
        ("5", "5 s"),
        ("5 square feet", "5\\text{ ft}^2"),
        ("5 km/h", "5 kilometers per hour"),
        ("9\\text{ sq. cm}", "9\\text{ square cm}"),
        ("5am", "5ma"),
        ("12\\text{ cm}^3", "12\\text{ cubic centimeters}"),
        ("3\\sqrt{2}", "3\\sqrt{2}\\text{ in}"),
    ],
)
def test_the_same_unit_may_be_written_otherwise_or_left_out(gold: str, given: str) -> None:
    boxed = {"response": f"\\boxed{{{given}}}"}
    assert MathEquivalence().score({"answer": gold}, boxed) == {"math_equiv": 1.0}


# math-verify takes each of these pairs for equal.
_NOT_THE_SAME = [
    ("3m", "3"),
    ("3m", "3h"),
    ("3 metres", "3s"),
    ("5 cm", "5m"),
    ("3m", "3^T"),
    ("3_2", "3'"),
    ("1 2", "(3)"),
    ("1 2", "3"),
    ("BA", "ba"),
    ("x+A", "x+a"),
    ("(1,2)", r"\{1,2\}"),
    ("3,4", "(4,3)"),
    (r"3_{10}", r"\binom{3}{2}"),
]


@pytest.mark.parametrize(("gold", "given"), _NOT_THE_SAME)
@pytest.mark.parametrize(("rule", "key"), [("", "math_equiv"), ("verify", "math_verify")])
def test_what_symbols_drop_makes_answers_differ(gold: str, given: str, rule: str, key: str) -> None:
    evaluator = MathEquivalence(rule=rule)
    for answer, said in ((gold, given), (given, gold)):
        boxed = {"response": f"The answer is $\\boxed{{{said}}}$"}
        assert evaluator.score({"answer": answer}, boxed) == {key: 0.0}
        same = {"response": f"The answer is $\\boxed{{{answer}}}$"}
        assert evaluator.score({"answer": answer}, same) == {key: 1.0}


@pytest.mark.parametrize(
    ("gold", "given"),
    [
        ("3m", "3 metres"),
        ("3m", "3 m"),
        ("3,4", "(3,4)"),
        ("4,3", r"3\text{ or }4"),
        ("1011_2", "1011"),
        (r"1\frac{1}{2}", "3/2"),
        ("1 1/2", r"\frac32"),
        ("10 000", "10000"),
        ("5 km", "5"),
        (r"2x\text{ cm}", "2x"),
    ],
)
def test_what_may_be_left_unsaid_makes_no_difference(gold: str, given: str) -> None:
    assert score(gold, f"The answer is $\\boxed{{{given}}}$") == 1.0
