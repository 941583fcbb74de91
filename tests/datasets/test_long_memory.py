"""long-memory: far longer than what the baselines remember, and the same every time."""

from collections import Counter
from datetime import datetime
from typing import Any

import pytest

from cbench_server import evaluate_memory
from cbench_server.datasets.embedded.sets import LONG_MEMORY
from cbench_server.runs.digests import canonical_digest
from cbench_server.systems import MEMORY_BUILTINS


@pytest.fixture(scope="module")
def conversations() -> list[dict[str, Any]]:
    return [*LONG_MEMORY.examples()]


def test_it_is_long_and_goes_forward_in_time(conversations: list[dict[str, Any]]) -> None:
    assert len(conversations) == LONG_MEMORY.size
    for each in conversations:
        assert len(each["turns"]) > 400, "twenty times what last-n remembers"
        times = [datetime.fromisoformat(turn["time"]) for turn in each["turns"]]
        assert times == sorted(times)
        assert len({turn["session"] for turn in each["turns"]}) == 32
        assert len({turn["speaker"] for turn in each["turns"]}) == 2


def test_it_is_the_same_every_time(conversations: list[dict[str, Any]]) -> None:
    assert [*LONG_MEMORY.examples()] == conversations
    digest = canonical_digest({"all": conversations})
    assert digest == "558241b8d188787ca7c026878b2d859f20037160bc8546dbccac87bc66065389"


def test_questions_are_of_five_types_and_their_answers_are_said_last(
    conversations: list[dict[str, Any]],
) -> None:
    types: Counter[str] = Counter()
    for each in conversations:
        asked = [pair["question"] for pair in each["qa_pairs"]]
        assert len(set(asked)) == len(asked)
        for pair in each["qa_pairs"]:
            types[pair["type"]] += 1
            assert pair["is_abstention"] == (pair["type"] == "adversarial")
            telling = [turn for turn in each["turns"] if pair["answer"] in turn["content"]]
            assert bool(telling) != pair["is_abstention"], pair
    assert types == {
        "single_hop": 30,
        "knowledge_update": 24,
        "temporal": 18,
        "multi_hop": 12,
        "adversarial": 12,
    }


def test_the_end_tells_little_words_tell_most_and_all_of_it_tells_all() -> None:
    names = ("last-n", "bm25", "full-history")
    systems = [MEMORY_BUILTINS[name] for name in names]
    summary = evaluate_memory(systems, "long-memory", max_examples=2, progress=False).summary
    last, words, whole = (summary[name]["mean_score"] for name in names)
    assert last is not None
    assert words is not None
    assert last < 0.2
    assert 0.6 < words < 0.9
    assert whole == 1.0
