"""Microseconds a row for each evaluator: `python benchmarks/scoring.py [NAME...]`.

Every case is scored on pairs not seen before, as in a run, and beside it the
reference implementation where there is one.
"""

import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cbench_server.evaluators import (
    IFEvalChecker,
    MathEquivalence,
    MultipleChoiceAccuracy,
    NLILabelMatch,
    SummarizationQuality,
)

Pair = tuple[dict[str, Any], dict[str, Any]]
ROUNDS = 200


@dataclass(frozen=True)
class Case:
    """One evaluator on one kind of pair; `make` gives a new pair for each number."""

    evaluator: str
    label: str
    score: Callable[[dict[str, Any], dict[str, Any]], Any]
    make: Callable[[int], Pair]
    reference: Callable[[dict[str, Any], dict[str, Any]], Any] | None = None


def main(names: list[str]) -> None:
    print("| evaluator | pair | ours, us | reference, us |")
    print("|---|---|---:|---:|")
    for case in CASES:
        if names and case.evaluator not in names:
            continue
        ours = microseconds(case.score, case.make)
        theirs = f"{microseconds(case.reference, case.make):.0f}" if case.reference else ""
        print(f"| {case.evaluator} | {case.label} | {ours:.0f} | {theirs} |")


def microseconds(
    score: Callable[[dict[str, Any], dict[str, Any]], Any], make: Callable[[int], Pair]
) -> float:
    """Return CPU time a pair."""
    pairs = [make(number) for number in range(ROUNDS)]
    score(*make(ROUNDS))
    started = time.process_time()
    for original, processed in pairs:
        score(original, processed)
    return (time.process_time() - started) / ROUNDS * 1e6


def multiple_choice(sentences: int) -> Callable[[int], Pair]:
    """Make responses that reason for so many sentences and then state their answer."""

    def make(number: int) -> Pair:
        reasoning = f"A planet spins faster after impact {number}, so option A is less likely. "
        original = {
            "correct_letter": "B",
            "choices": [f"{text} {number}" for text in ("slower", "faster", "heavier", "older")],
        }
        return original, {"response": reasoning * sentences + "The answer is (B)."}

    return make


def mmlu_pro_regex(original: dict[str, Any], processed: dict[str, Any]) -> bool:
    """Find the answer as the first of the MMLU-Pro grader's patterns does."""
    found = re.search(r"answer is \(?([A-J])\)?", processed["response"])
    return found is not None and found[1] == original["correct_letter"]


def ifeval(sentences: int) -> Callable[[int], Pair]:
    """Make responses of so many sentences that need a word, a sentence and a language count."""

    def make(number: int) -> Pair:
        original = {
            "instruction_id_list": [
                "length_constraints:number_words",
                "length_constraints:number_sentences",
                "change_case:english_lowercase",
            ],
            "kwargs": [
                {"num_words": 100, "relation": "at least"},
                {"num_sentences": 10, "relation": "less than"},
                {},
            ],
        }
        sentence = f"the planet spins faster after impact {number} and nobody knows why. "
        return original, {"response": sentence * sentences}

    return make


def nli(sentences: int) -> Callable[[int], Pair]:
    """Make responses that reason for so many sentences and then state their label."""

    def make(number: int) -> Pair:
        reasoning = f"Clause {number} allows copies, which the hypothesis does not mention. "
        response = reasoning * sentences + "Therefore, the answer is contradiction."
        return {"answer": "Contradiction"}, {"response": response}

    return make


def solution(steps: int) -> Callable[[int], Pair]:
    """Make solutions of so many steps that end as those of GSM8K do."""

    def make(number: int) -> Pair:
        step = f"She sells {number} eggs at $2, so she makes {number} * 2 = ${number * 2} a day.\n"
        return {"answer": str(number * 2)}, {"response": step * steps + f"#### {number * 2}"}

    return make


def summary(words: int) -> Callable[[int], Pair]:
    """Make two texts of so many words out of 997."""

    def make(number: int) -> Pair:
        gold = " ".join(f"w{(place * 7 + number) % 997}" for place in range(words))
        response = " ".join(f"w{(place * 11 + number) % 997}" for place in range(words))
        return {"answer": gold}, {"response": response}

    return make


def by_math_verify(original: dict[str, Any], processed: dict[str, Any]) -> bool:
    from math_verify import parse, verify

    gold, given = parse(original["answer"]), parse(processed["response"])
    return bool(verify(gold, given))


def by_rouge_score(original: dict[str, Any], processed: dict[str, Any]) -> object:
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(["rougeL"]).score(original["answer"], processed["response"])


CASES = [
    Case("math-equivalence", "5 steps", MathEquivalence().score, solution(5), by_math_verify),
    Case("math-equivalence", "100 steps", MathEquivalence().score, solution(100)),
    Case(
        "summarization-quality",
        "50 words",
        SummarizationQuality().score,
        summary(50),
        by_rouge_score,
    ),
    Case("summarization-quality", "5,000 words", SummarizationQuality().score, summary(5_000)),
    Case("ifeval", "2 sentences", IFEvalChecker().score, ifeval(2)),
    Case("ifeval", "40 sentences", IFEvalChecker().score, ifeval(40)),
    Case("nli-label-match", "short", NLILabelMatch().score, nli(0)),
    Case("nli-label-match", "20 sentences", NLILabelMatch().score, nli(20)),
    Case(
        "multiple-choice",
        "short",
        MultipleChoiceAccuracy().score,
        multiple_choice(0),
        mmlu_pro_regex,
    ),
    Case(
        "multiple-choice",
        "20 sentences",
        MultipleChoiceAccuracy().score,
        multiple_choice(20),
        mmlu_pro_regex,
    ),
]

if __name__ == "__main__":
    main(sys.argv[1:])
