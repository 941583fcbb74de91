"""Cheats: systems that would rather not be scored; none beats its honest twin in the headline."""

from typing import Any

import pytest

from cbench_server import evaluate
from cbench_server.evaluators import AnswerQuality, ContextRetention
from cbench_server.metrics import MeanScore

KNOWN, ASKED = 6, 20


def examples() -> list[dict[str, Any]]:
    return [
        {
            "id": number,
            "context": f"The code of door {number} is word{number}, said the porter.",
            "question": f"What is the code of door {number}?",
            "answer": f"word{number}",
        }
        for number in range(ASKED)
    ]


class Honest:
    """Knows some answers, and says where it does not."""

    name = "honest"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        if example["id"] < KNOWN:
            return {**example, "response": f"word{example['id']}"}
        return self.unknown(example)

    def unknown(self, example: dict[str, Any]) -> dict[str, Any]:
        return {**example, "response": "I do not know"}


class ReturnsTheContext(Honest):
    """Leaves the response out where it would be wrong, so that retention might count."""

    name = "returns-the-context"

    def unknown(self, example: dict[str, Any]) -> dict[str, Any]:
        return {"context": example["context"]}


class Fails(Honest):
    name = "fails"

    def unknown(self, example: dict[str, Any]) -> dict[str, Any]:
        raise RuntimeError("too hard")


class ReturnsNothing(Honest):
    name = "returns-nothing"

    def unknown(self, example: dict[str, Any]) -> dict[str, Any]:
        return {}


class ReturnsNull(Honest):
    name = "returns-null"

    def unknown(self, example: dict[str, Any]) -> dict[str, Any]:
        return {"context": None, "response": None}


class EchoesTheContext(Honest):
    """Says everything it was told, which holds the answer somewhere."""

    name = "echoes-the-context"

    def unknown(self, example: dict[str, Any]) -> dict[str, Any]:
        return {**example, "response": " ".join([example["context"]] * 3)}


def headline(system: Honest) -> dict[str, Any]:
    evaluators = [AnswerQuality(), ContextRetention()]
    result = evaluate([system], examples(), evaluators, [MeanScore()], progress=False)
    return {**result.summary[system.name], "headline": result.config["headlines"][system.name]}


@pytest.mark.parametrize("cheat", [ReturnsTheContext, Fails, ReturnsNothing, ReturnsNull])
def test_what_is_not_answered_is_not_left_out(cheat: type[Honest]) -> None:
    honest, found = headline(Honest()), headline(cheat())
    assert honest["mean_score_with_failures"] == pytest.approx(KNOWN / ASKED)
    assert found["mean_score_with_failures"] == honest["mean_score_with_failures"]
    assert found["headline"] == ["f1"]
    assert found["num_scored"] + found["num_failed"] == ASKED


def test_saying_everything_does_not_make_a_right_answer() -> None:
    found = headline(EchoesTheContext())
    assert found["mean_score_with_failures"] < KNOWN / ASKED + 0.1


def test_a_system_that_never_responds_is_judged_by_what_it_retains_and_says_so() -> None:
    class Compressor(ReturnsTheContext):
        def process(self, example: dict[str, Any]) -> dict[str, Any]:
            return self.unknown(example)

    found = headline(Compressor())
    assert (found["headline"], found["mean_score"]) == (["answer_retained"], 1.0)
