"""Conversations become questions, each with what is needed to score it."""

from collections.abc import Iterator
from typing import Any

import pytest

from cbench_server.datasets.conversations import NO_ANSWER, questions
from cbench_server.errors import BadDataset
from cbench_server.evaluators import ContextRetention


def conversation(name: Any = "c", **more: Any) -> dict[str, Any]:
    return {
        "id": name,
        "turns": [
            {"role": "user", "content": "I bought a boat.", "speaker": "Ida", "time": "2024-01-01"},
            {"role": "assistant", "content": "What colour?"},
            {"role": "user", "content": "It is sea green."},
        ],
        "qa_pairs": [
            {"question": "Which colour?", "answer": "Sea-green", "type": "single_hop"},
            {"question": "What was bought?", "answer": "a boat", "type": "multi_hop"},
            {"question": "Which price?", "answer": "", "type": "trap", "is_abstention": True},
        ],
        **more,
    }


def made(*conversations: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    return list(questions(iter(conversations), label="given", **options))


def test_the_first_question_carries_the_turns_and_the_others_do_not() -> None:
    first, second, third = made(conversation())
    assert [turn["content"] for turn in first["turns"]] == [
        "I bought a boat.",
        "What colour?",
        "It is sea green.",
    ]
    assert first["question_count"] == 3
    assert "turns" not in second
    assert [each["id"] for each in (first, second, third)] == ["c_0", "c_1", "c_2"]
    assert {each["group"] for each in (first, second, third)} == {"c"}
    assert first["question_type"] == "single_hop"


def test_turns_may_number_what_is_text_and_leave_out_what_they_do_not_know() -> None:
    turn = {"content": "x", "time": 1700000000, "session": 2, "speaker": None, "mood": 3}
    [example] = made(conversation(turns=[turn], qa_pairs=[{"question": "q", "answer": "x"}]))
    expected = {"role": "user", "content": "x", "time": "1700000000", "session": "2", "mood": 3}
    assert example["turns"] == [expected]
    assert example["context"] == "[1700000000] user: x"


def test_the_context_is_what_the_answer_stands_in_else_the_end() -> None:
    colour, bought, price = made(conversation())
    assert colour["context"] == "[2024-01-01] Ida: I bought a boat.\nassistant: What colour?\n" + (
        "user: It is sea green."
    )
    assert bought["context"] == "[2024-01-01] Ida: I bought a boat."
    assert price["context"].endswith("user: It is sea green.")


def test_a_long_conversation_is_cut_to_its_end_and_keeps_a_turn_however_long() -> None:
    turns = [{"role": "user", "content": f"{number} " + "x" * 1000} for number in range(10)]
    [example] = made({"turns": turns, "qa_pairs": [{"question": "q", "answer": "none"}]})
    assert [line[:7] for line in example["context"].splitlines()] == ["user: 8", "user: 9"]
    turns = [{"role": "user", "content": "y" * 5000}]
    [example] = made({"turns": turns, "qa_pairs": [{"question": "q", "answer": "none"}]})
    assert len(example["context"]) == 5006


def test_retention_is_the_same_with_the_excerpt_as_with_the_whole() -> None:
    _, bought, _ = made(conversation())
    whole = "Ida: I bought a boat. assistant: What colour? user: It is sea green."
    for kept in ("They talked of a boat", "nothing"):
        processed = {"context": kept}
        expected = ContextRetention().score({**bought, "context": whole}, processed)
        assert ContextRetention().score(bought, processed) == expected


def test_a_question_without_an_answer_says_so() -> None:
    *_, price = made(conversation())
    assert (price["is_abstention"], price["answer"]) == (True, NO_ANSWER)
    assert ContextRetention().score(price, {"context": NO_ANSWER}) == {}


def test_ids_stay_the_same_when_types_are_left_out() -> None:
    [second] = made(conversation(), question_types=["multi_hop"])
    assert (second["id"], second["question_count"]) == ("c_1", 1)
    assert "turns" in second


def test_abstention_is_a_type_of_its_own() -> None:
    assert [each["id"] for each in made(conversation(), question_types=["abstention"])] == ["c_2"]


def test_conversations_are_counted_after_the_filters() -> None:
    given = [conversation(number, topic=str(number % 2)) for number in range(6)]
    chosen = made(*given, where={"topic": "1"}, max_conversations=2)
    assert list(dict.fromkeys(each["group"] for each in chosen)) == ["1", "3"]


def test_a_type_that_no_question_has_is_named_with_those_there_are() -> None:
    with pytest.raises(BadDataset, match="it has: multi_hop, single_hop, trap"):
        made(conversation(), question_types=["tempral"])


def test_a_type_that_no_question_has_is_found_before_the_first_question() -> None:
    given = [conversation(number) for number in range(3)]
    asked = questions(
        iter(given),
        label="d",
        question_types=["multi-hop", "tempral"],
        max_conversations=1,
        read_again=lambda: iter(given),
    )
    with pytest.raises(BadDataset, match="no questions of type tempral"):
        next(asked)


def test_a_type_is_looked_for_beyond_the_cap_and_no_further_than_it_is_met() -> None:
    with pytest.raises(BadDataset, match="no questions of type tempral"):
        made(conversation(0), question_types=["multi_hop", "tempral"], max_conversations=1)
    read: list[int] = []

    def given() -> Iterator[dict[str, Any]]:
        for number in range(9):
            read.append(number)
            yield conversation(number)

    types = ["multi_hop", "abstention"]
    list(questions(given(), label="d", question_types=types, max_conversations=1, read_again=given))
    assert read == [0, 0]


@pytest.mark.parametrize(
    ("example", "message"),
    [
        ({"context": "c"}, 'position 0: there are no "turns"'),
        ({"turns": [{"role": "user"}], "qa_pairs": [{}]}, 'turn 0 has no "content" in text'),
        ({"turns": [{"content": "x"}]}, 'there are no "qa_pairs"'),
        ({"turns": [{"content": "x"}], "qa_pairs": ["?"]}, 'has no "question" in text'),
    ],
    ids=["turns", "content", "pairs", "question"],
)
def test_a_conversation_that_is_none_is_refused(example: dict[str, Any], message: str) -> None:
    with pytest.raises(BadDataset, match=message):
        made(example)
