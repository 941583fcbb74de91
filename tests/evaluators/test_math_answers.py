"""Final answers: where a solution states them."""

import json
from pathlib import Path
from typing import Any

import pytest

from cbench_server.evaluators import MathEquivalence
from cbench_server.evaluators.math.answers import final_answer, reference_answer

_DATA = Path(__file__).parents[3] / "shared/data/hub"


@pytest.mark.parametrize(
    ("response", "answer", "found_by"),
    [
        (r"So $\boxed{1}$, hence $\boxed{\frac{1}{2}}$.", r"\frac{1}{2}", "boxed"),
        (r"\boxed{x^{2}+1} I checked it 3 times.", "x^{2}+1", "boxed"),
        (r"\boxed{5", "5", "boxed"),
        (r"\boxed 5.", "5", "boxed"),
        (r"\boxed{255} is a step. The final answer is $10,455$. I hope", "10,455", "stated"),
        ("9 * 2 = $<<9*2=18>>18 a day\n#### 18", "18", "####"),
        ("The answer is 5.\n#### 6", "6", "####"),
        ("#### Step 3: add\nThat gives 18.", "18", "last number"),
        ("#### Final Answer\n18", "18", "stated"),
        ("The answer is 18 eggs in 3 days.", "18", "stated"),
        ("The answer is 5 (because 2+3=5, not 7-3=4).", "5", "stated"),
        ("The answer is 2 apples + 3 apples = 5 apples.", "5", "stated"),
        ("The answer is $18 per day, 9 eggs at $2.", "$18", "stated"),
        ("The answer to 3 + 4 is 7.", "7", "stated"),
        ("Find the answer: 3 * 4 = 12\nThen add 6.\nA: 18", "18", "stated"),
        ("The answer is 4. No, the answer is 5.", "5", "stated"),
        ("the answer is 5 + 3 = 8", "5 + 3 = 8", "stated"),
        ("Final Answer: The largest $n$ is 34.", "34", "stated"),
        ("**Final Answer**\n\n18", "18", "stated"),
        ("### Answer\n$$\n\\frac{1}{2}\n$$", r"\frac{1}{2}", "stated"),
        ("The answer is:\n\\[ x = 5 \\]", "x = 5", "stated"),
        ("The answer is as follows:\n18", "18", "stated"),
        ("Answer: **$18**", "$18", "stated"),
        ("答案是18个鸡蛋。", "18", "stated"),
        ("উত্তর হল ১৮", "18", "stated"),
        ("คำตอบคือ ๑๘", "18", "stated"),
        ("La respuesta es 18 dólares.", "18", "stated"),
        ("Die Antwort auf die Frage ist 18.", "18", "stated"),
        ("答えは18です。", "18", "stated"),
        ("Jibu ni 18.", "18", "stated"),
        (r"\frac{1}{2}", r"\frac{1}{2}", "whole"),
        ("(1, 2]", "(1, 2]", "whole"),
        ("x = 5", "x = 5", "whole"),
        ("In total 4 + 5 = 9 points in the 40 minutes.", "9", "equals"),
        ("3*4=12, 12+6=18", "18", "equals"),
        ("So she has 18 left.", "18", "last number"),
        ("He earns $1,800 on weekdays", "$1,800", "last number"),
        ("It fell to -5 degrees.", "-5 degrees", "last number"),
        ("It takes 10-12 weeks", "12 weeks", "last number"),
        ("Here is what is left:\n- 18 apples", "18", "last number"),
        ("She leaves at 7:30.", "7:30", "last number"),
        ("It is 1,000.99m²", "1,000.99", "last number"),
        ("Call room AZ2A", "Call room AZ2A", "whole"),
        (r"The line is $y = 2x + 3$.", "y = 2x + 3", "last formula"),
        (r"They are $1$ and $2$.", "1, 2", "last formula"),
        ("It costs $5 at first and $7 later.", "$7", "last number"),
        ("The function is even", "even", "last line"),
    ],
)
def test_the_final_answer_is_found(response: str, answer: str, found_by: str) -> None:
    found = final_answer(response)
    assert (found.text, found.found_by) == (answer, found_by)


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        ("18", "18"),
        ("$2-2p$", "2-2p"),
        ("10 dollars", "10 dollars"),
        ("all real numbers except 2", "all real numbers except 2"),
        ("She makes 9 * 2 = $<<9*2=18>>18 a day.\n#### 18", "18"),
        ("She makes $18 a day.\nA: 18", "18"),
        (r"The roots are $\boxed{1}$ and $\boxed{2}$.", "1, 2"),
    ],
)
def test_a_reference_is_an_answer_or_a_solution(reference: str, answer: str) -> None:
    assert reference_answer(reference) == answer


def _rows(path: str) -> list[dict[str, Any]]:
    file = _DATA / path
    if not file.exists():
        pytest.skip("needs ../shared/data, which is not part of the repository")
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


@pytest.mark.parametrize(
    "ending",
    [
        "#### {}",
        "A: {}",
        "The answer is {}.",
        "So the answer is ${}.",
        "\\boxed{{{}}}",
        "Therefore, the final answer is $\\boxed{{{}}}$.",
        "Final Answer: {} apples",
        "**Answer:** {}.00",
        "So in total it is {}!",
        "So there are **{}** left.",
    ],
)
def test_solutions_of_gsm8k_are_graded_by_how_they_end(ending: str) -> None:
    evaluator = MathEquivalence()
    rows = [row["answer"].split("####") for row in _rows("openai/gsm8k/main/test.jsonl")]
    for (solution, gold), (_, next_gold) in zip(rows, rows[1:] + rows[:1], strict=True):
        for given in {gold.strip(), next_gold.strip()}:
            response = {"response": solution + ending.format(given)}
            expected = {"math_equiv": float(given == gold.strip())}
            assert evaluator.score({"answer": gold.strip()}, response) == expected
            assert evaluator.score({"answer": f"{solution}#### {gold}"}, response) == expected


def test_most_solutions_of_gsm8k_are_understood_without_any_mark() -> None:
    rows = [row["answer"].split("####") for row in _rows("openai/gsm8k/main/test.jsonl")]
    scores = [
        MathEquivalence().score({"answer": gold.strip()}, {"response": solution.strip()})
        for solution, gold in rows
    ]
    assert sum(one["math_equiv"] for one in scores) / len(rows) >= 0.99


@pytest.mark.parametrize(
    ("language", "zero", "sentence"),
    [
        ("bn", "০", "উত্তর হল {}।"),
        ("te", "౦", "సమాధానం {}."),
        ("th", "๐", "คำตอบคือ {}"),
        ("zh", "0", "答案是{}。"),
        ("ja", "0", "答えは{}です。"),
        ("ru", "0", "Ответ: {}."),
        ("sw", "0", "Jibu ni {}."),
        ("de", "0", "Die Antwort ist {}."),
        ("es", "0", "La respuesta es {}."),
        ("fr", "0", "La réponse est {}."),
    ],
)
def test_answers_of_mgsm_are_read_in_their_language(
    language: str, zero: str, sentence: str
) -> None:
    digits = {str(digit): chr(ord(zero) + digit) for digit in range(10)}
    for row in _rows(f"juletxara/mgsm/{language}/test.jsonl"):
        gold = row["answer_number"]
        local = sentence.format(str(gold).translate(str.maketrans(digits)))
        assert MathEquivalence().score({"answer": gold}, {"response": local})["math_equiv"] == 1.0
        wrong = sentence.format(str(gold + 1).translate(str.maketrans(digits)))
        assert MathEquivalence().score({"answer": gold}, {"response": wrong})["math_equiv"] == 0.0
