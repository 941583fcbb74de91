"""Evaluators of text answers: the numbers of the benchmarks' own scripts.

The tables in vectors/ hold texts made here and what each official script gave for them.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from cbench_server.evaluators import (
    Drop,
    HelmF1,
    HotpotQA,
    InfiniteBench,
    LoCoMo,
    LongBench,
    MathEquivalence,
    MultipleChoiceAccuracy,
    MuSiQue,
    NQOpen,
    Rouge,
    StringMatch,
    SubspanExactMatch,
    TriviaQA,
)

VECTORS = Path(__file__).parent / "vectors"


def vectors(name: str) -> list[Any]:
    found: list[Any] = json.loads((VECTORS / f"{name}.json").read_text("utf-8"))
    assert len(found) >= 400
    return found


@pytest.mark.parametrize(
    ("name", "evaluator"),
    [("hotpotqa", HotpotQA()), ("musique", MuSiQue()), ("triviaqa", TriviaQA())],
)
def test_f1_and_exact_match(name: str, evaluator: HotpotQA | MuSiQue | TriviaQA) -> None:
    for response, answers, expected in vectors(name):
        found = evaluator.score({"answers": answers}, {"response": response})
        assert found == pytest.approx(expected, abs=1e-12), (response, answers)


def test_exact_match_by_nq_open() -> None:
    for response, answers, expected in vectors("nq_open"):
        found = NQOpen().score({"answers": answers}, {"response": response})
        assert found == {"nq_open_em": expected}, (response, answers)


def test_subspan_em_by_lost_in_the_middle() -> None:
    first_line, whole = SubspanExactMatch(), SubspanExactMatch(first_line=False)
    for response, answers, expected in vectors("subspan_em"):
        pair = {"answers": answers}, {"response": response}
        found = {
            "first_line": first_line.score(*pair)["subspan_em"],
            "whole": whole.score(*pair)["subspan_em"],
        }
        assert found == expected, (response, answers)


def test_string_match_by_ruler() -> None:
    for response, answers, expected in vectors("string_match"):
        pair = {"answers": answers}, {"response": response}
        # RULER's functions give percent with two decimals.
        found = {
            "all": round(100 * StringMatch(mode="all").score(*pair)["string_match"], 2),
            "part": round(100 * StringMatch(mode="part").score(*pair)["string_match"], 2),
        }
        assert found == expected, (response, answers)


def test_letters_by_lm_eval_and_zero_scrolls() -> None:
    options = ["east", "west", "north", "south"]
    for rule, response, letter, expected in vectors("letters"):
        evaluator = MultipleChoiceAccuracy(extraction=rule)
        row = {"correct_letter": letter, "choices": options}
        found = evaluator.score(row, {"response": response})
        assert found == {"mc_accuracy": expected}, (rule, response, letter)


def test_numbers_by_lm_eval_for_mgsm() -> None:
    for response, answer, expected in vectors("mgsm"):
        found = MathEquivalence(rule="mgsm").score({"answer": answer}, {"response": response})
        assert found["mgsm_flexible"] == expected, (response, answer)


def test_names_by_nolima() -> None:
    contains = StringMatch(mode="part", case_sensitive=True)
    for response, answers, expected in vectors("nolima"):
        found = contains.score({"answers": answers}, {"response": response})
        assert found == {"string_match": expected}, (response, answers)


def test_f1_by_helm() -> None:
    for response, answers, expected in vectors("helm_f1"):
        found = HelmF1().score({"answers": answers}, {"response": response})
        assert found == pytest.approx({"helm_f1": expected}, abs=1e-12), (response, answers)


def test_answers_about_meetings_by_llmlingua() -> None:
    evaluator = SubspanExactMatch(skip_empty=True)
    for response, answers, expected in vectors("lingua_qa"):
        found = evaluator.score({"answers": answers}, {"response": response})
        assert found == {"subspan_em": expected}, (response, answers)


_ROUGE = {
    "stem": Rouge(use_stemmer=True),
    "mean": Rouge(use_stemmer=True, reference="mean"),
    "line": Rouge(first_line=True),
}


def test_rouge_by_pegasus_dialogsum_and_llmlingua() -> None:
    for settings, response, answers, expected in vectors("rouge_settings"):
        found = _ROUGE[settings].score({"answers": answers}, {"response": response})
        assert found == pytest.approx(expected, abs=1e-12), (settings, response, answers)


def test_locomo() -> None:
    for response, answer, category, expected in vectors("locomo"):
        found = LoCoMo().score({"answer": answer, "category": category}, {"response": response})
        assert found == pytest.approx({"locomo_f1": expected}, abs=1e-12), (response, answer)


def test_drop() -> None:
    for response, spans, expected in vectors("drop"):
        found = Drop().score({"answer_spans": spans}, {"response": response})
        assert found == pytest.approx(expected, abs=1e-12), (response, spans)


def test_infinitebench() -> None:
    for task, response, label, is_gpt4, expected in vectors("infinitebench"):
        evaluator = InfiniteBench(task=task, skip_first_number=is_gpt4)
        found = evaluator.score({"answer": label}, {"response": response})
        assert found == pytest.approx({"infinitebench_score": expected}, abs=1e-12), (
            task,
            response,
            label,
        )


def test_longbench() -> None:
    evaluator = LongBench()
    for task, response, answers, classes, expected in vectors("longbench"):
        original = {"task": task, "answers": answers, "all_classes": classes}
        found = evaluator.score(original, {"response": response})
        assert found == pytest.approx({"longbench_score": expected}, abs=1e-12), (
            task,
            response,
            answers,
        )
