"""Prompts that an endpoint cut without a word, told from its counts."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from cbench_server import evaluate
from cbench_server.evaluators import AnswerQuality
from cbench_server.models.prompt_counts import PromptCounts
from cbench_server.systems import BUILTINS
from cbench_server.systems.openai_proxy import OpenAIProxy
from cbench_server.tokens import get_tokenizer
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
    assert [
        counts.is_cut("some text " * (sent // 2), sent, reported) for sent, reported in pairs
    ] == cut


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


# Endpoints that count otherwise than we do, over many scripts.

SENTENCES = {
    "en": "The ferry leaves the harbour at nine and comes back before the tide turns. ",
    "de": "Die Fähre verlässt den Hafen um neun und kehrt vor dem Wechsel der Gezeiten zurück. ",
    "ru": "Паром уходит из гавани в девять и возвращается до начала отлива. ",
    "zh": "渡轮九点离开港口，在退潮之前返回。",
    "ja": "フェリーは九時に港を出て、潮が変わる前に戻ってきます。",
    "hi": "नौका नौ बजे बंदरगाह से निकलती है और ज्वार बदलने से पहले लौट आती है। ",
    "ar": "تغادر العبارة الميناء في التاسعة وتعود قبل أن يتغير المد. ",
    "th": "เรือข้ามฟากออกจากท่าเวลาเก้าโมงและกลับมาก่อนน้ำลง ",
    "py": "for tide in tides:\n    if tide.height > 2.5:\n        ferry.leave(harbour)\n",
}
COUNTERS: dict[str, Callable[[str], int]] = {
    "characters": lambda text: len(text) // 4,
    "bytes": lambda text: len(text.encode()) // 4,
    "o200k": get_tokenizer("o200k_base"),
    "generous": lambda text: len(text) // 2,
}


def counting(server: ModelServer, counter: Callable[[str], int], window: int) -> None:
    """Have the model read as much as its window holds, and say how much that was."""

    def read(handler: Handler) -> None:
        text = "".join(message["content"] for message in handler.request_body["messages"])
        usage = {"prompt_tokens": min(counter(text), window), "completion_tokens": 1}
        reply = {"choices": [{"message": {"content": "nine"}}], "usage": usage}
        handler.reply(200, json.dumps(reply))

    server.steps.append(read)


def asked_in(languages: list[str], lengths: range) -> list[dict[str, Any]]:
    """Make an example for each language and length, in characters, the languages mixed."""
    return [
        {
            "id": f"{language}-{length}",
            "context": (SENTENCES[language] * 400)[:length],
            "question": "When?",
            "answer": "nine",
        }
        for length in lengths
        for language in languages
    ]


def cut_ids(server: ModelServer, examples: list[dict[str, Any]]) -> set[str]:
    """Return the examples whose prompts were taken for cut."""
    result = evaluate(
        [BUILTINS["identity"]()],
        examples,
        [AnswerQuality()],
        reader=OpenAIProxy(server.url, "m"),
        anchors=False,
        asked_again=0,
        progress=False,
    )
    assert len(result.rows) == len(examples)
    return {str(row.example_id) for row in result.rows if "PROMPT_CUT" in row.marks}


@pytest.mark.parametrize("counter", COUNTERS.values(), ids=COUNTERS)
@pytest.mark.parametrize("lengths", [range(300, 3000, 300), range(1500, 1509)], ids=["many", "one"])
def test_counting_otherwise_is_no_cut_in_any_script(
    server: ModelServer, counter: Callable[[str], int], lengths: range
) -> None:
    counting(server, counter, 10**6)
    assert cut_ids(server, asked_in([*SENTENCES], lengths)) == set()


@pytest.mark.parametrize("counter", ["characters", "bytes", "o200k"])
def test_what_did_not_fit_is_seen_though_the_scripts_are_mixed(
    server: ModelServer, counter: str
) -> None:
    count, window = COUNTERS[counter], 500
    counting(server, count, window)
    examples = asked_in(["en", "zh", "hi", "ru"], range(200, 8000, 400))
    # By half and more, the instruction apart.
    too_long = {each["id"] for each in examples if count(each["context"]) > 2 * window}
    fitting = {each["id"] for each in examples if count(each["context"]) < 0.9 * window}
    assert len(too_long) > 10
    found = cut_ids(server, examples)
    assert not found & fitting
    missed = too_long - found
    assert len(missed) <= 0.1 * len(too_long), sorted(missed)
