"""`evaluate()` with models: whether they are there is found out before the first row."""

from pathlib import Path
from typing import Any

import pytest

from cbench_server import evaluate
from cbench_server.errors import SystemUnreachable
from cbench_server.evaluators import AnswerQuality, LLMJudge
from cbench_server.systems.openai_proxy import OpenAIProxy
from tests.fixtures.model_server import ModelServer, clean_environment, server
from tests.fixtures.ports import held_port

__all__ = ["clean_environment", "server"]


def examples(count: int) -> list[dict[str, Any]]:
    return [
        {"id": number, "context": "A word.", "question": "Which?", "answer": "word"}
        for number in range(count)
    ]


class Fixed:
    """Answers the same, and counts its calls."""

    name = "fixed"
    calls = 0

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        self.calls += 1
        return {**example, "response": "word"}


@pytest.mark.parametrize("what", ["mine", "the judge"])
def test_a_model_that_is_not_there_is_found_before_the_first_row(what: str) -> None:
    """By the same function as in the daemon, and of all systems before the first is called."""
    url, fixed = f"http://127.0.0.1:{held_port()}", Fixed()
    systems: list[Any] = [fixed]
    evaluators: list[Any] = [AnswerQuality()]
    if what == "the judge":
        evaluators.append(LLMJudge(base_url=url))
    else:
        systems.append(OpenAIProxy(url, name=what))
    with pytest.raises(SystemUnreachable) as caught:
        evaluate(systems, examples(2), evaluators, progress=False)
    assert str(caught.value) == (
        f"{what} at {url}/v1/models cannot be reached: Connection refused. Check its URL."
    )
    assert fixed.calls == 0


def test_a_model_whose_answers_are_all_cached_need_not_be_there(
    tmp_path: Path, server: ModelServer
) -> None:
    server.say("word")
    url, options = server.url, {"progress": False, "cache_dir": str(tmp_path)}
    first = evaluate([OpenAIProxy(url, name="m")], examples(2), [AnswerQuality()], **options)
    assert len(server.requests) == 2
    server.listing = 401
    again = evaluate([OpenAIProxy(url, name="m")], examples(2), [AnswerQuality()], **options)
    assert [row.scores for row in again.rows] == [row.scores for row in first.rows]
    with pytest.raises(SystemUnreachable, match="401"):
        evaluate([OpenAIProxy(url, name="m")], examples(3), [AnswerQuality()], **options)


def test_what_a_model_asks_to_wait_has_to_fit_into_the_rows_time(server: ModelServer) -> None:
    """All attempts of a row share its time, and so do those of the turns of a conversation."""
    server.answer(503, Retry_After="2")
    server.say("word")
    server.answer(503, Retry_After="19")
    turns = [{"role": "user", "content": text} for text in ("Say a word.", "Another.")]
    example = {"id": 1, "context": "", "multi_turn": True, "turns": turns, "answer": "a"}
    result = evaluate(
        [OpenAIProxy(server.url, name="m", max_retries=5, retry_base_delay=0.001)],
        [example],
        [AnswerQuality()],
        progress=False,
        timeout=20,
    )
    [row] = result.rows
    assert row.failure is not None
    assert (row.failure.reason, row.failure.attempts) == ("UNAVAILABLE", 1)
    assert len(server.requests) == 3
