"""Prompts that an endpoint cut without a word, told from its counts."""

import json
from typing import Any

import pytest

from cbench_server import evaluate
from cbench_server.evaluators import AnswerQuality
from cbench_server.models.prompt_counts import PromptCounts
from cbench_server.systems import BUILTINS
from cbench_server.systems.openai_proxy import OpenAIProxy
from tests.fixtures.model_server import Handler, ModelServer, clean_environment, server

__all__ = ["clean_environment", "server"]

WINDOW = 2048


@pytest.mark.parametrize(
    ("pairs", "cut"),
    [
        (
            [(2600, WINDOW), (3100, WINDOW), (2900, WINDOW), (3000, WINDOW)],
            [False, False, True, True],
        ),
        ([(900, 1000), (1000, 1080), (1100, 1190), (1150, 1260)], [False] * 4),
        ([(3000, WINDOW)] * 4, [False] * 4),
        ([(100, 500), (250, 500), (400, 500), (300, 500)], [False] * 4),
        ([(1000, 990), (1010, 990), (1020, 990), (1030, 990)], [False] * 4),
        ([(3000, 2000), (2600, 2000), (2400, 2000), (2500, 2500)], [False, False, True, False]),
        ([(100, 0), (100, None), (0, 5)], [False] * 3),
    ],
    ids=["window", "honest", "one-length", "more-than-sent", "near", "not-the-largest", "unknown"],
)
def test_a_window_shows_where_many_lengths_come_to_one_count(
    pairs: list[tuple[int, Any]], cut: list[bool]
) -> None:
    counts = PromptCounts()
    assert [counts.is_cut(sent, reported) for sent, reported in pairs] == cut


def test_rows_that_did_not_fit_are_marked_though_most_did_not(server: ModelServer) -> None:
    """By how the model usually counts, nothing would be amiss here."""

    def read(handler: Handler) -> None:
        words = str(handler.request_body["messages"]).split()
        usage = {"prompt_tokens": min(len(words), 450), "completion_tokens": 1}
        reply = {"choices": [{"message": {"content": "word"}}], "usage": usage}
        handler.reply(200, json.dumps(reply))

    server.steps.append(read)
    examples = [
        {"id": n, "context": "word " * (550 + 20 * n), "question": "Which?", "answer": "word"}
        for n in range(12)
    ]
    result = evaluate(
        [BUILTINS["identity"](), BUILTINS["truncate-tail"]()],
        examples,
        [AnswerQuality()],
        reader=OpenAIProxy(server.url, "m"),
        anchors=False,
        asked_again=0,
        progress=False,
    )
    assert result.summary["identity"]["num_prompts_cut"] >= 10
    assert result.summary["truncate-tail"]["num_prompts_cut"] == 0
