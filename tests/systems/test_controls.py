"""Controls keep what they say, cut where they say, and always the same."""

import random
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench_server.errors import InvalidInput
from cbench_server.systems import BUILTINS
from cbench_server.systems.controls import keep_at_random, keep_beginning, keep_end

TEN = "one two three four five six seven eight nine ten"
CUTTERS = ["truncate-head", "truncate-tail", "random-drop"]


def context_from(name: str, context: str, *, id: Any = 1, **options: Any) -> str:
    result: str = BUILTINS[name](**options).process({"id": id, "context": context})["context"]
    return result


def is_subsequence(part: list[str], whole: list[str]) -> bool:
    rest = iter(whole)
    return all(word in rest for word in part)


def test_the_controls_are_listed_under_their_names() -> None:
    assert list(BUILTINS) == ["identity", "no-context", *CUTTERS, "lead"]
    assert all(BUILTINS[name]().name == name for name in BUILTINS)


def test_truncate_head_drops_the_head() -> None:
    assert context_from("truncate-head", TEN, ratio=0.3) == "eight nine ten"


def test_truncate_tail_drops_the_tail() -> None:
    assert context_from("truncate-tail", TEN, ratio=0.3) == "one two three"


def test_white_space_inside_what_is_kept_stays() -> None:
    text = "a  b\n\nc\td e f"
    assert keep_beginning(text, 0.5) == "a  b\n\nc"
    assert keep_end(text, 0.5) == "d e f"


@pytest.mark.parametrize("name", [name for name in BUILTINS if name != "lead"])
def test_only_the_context_changes_and_there_is_no_response(name: str) -> None:
    example = {"id": 7, "context": TEN, "question": "q?", "choices": ["a"], "response": "stale"}
    processed = BUILTINS[name]().process(dict(example))
    assert processed.keys() == {"id", "context", "question", "choices"}
    assert processed | {"context": TEN, "response": "stale"} == example


@pytest.mark.parametrize("name", CUTTERS)
@pytest.mark.parametrize("text", [TEN, " spaced  out \n", "東京は日本の首都", "", " "])
def test_all_or_nothing_is_exact(name: str, text: str) -> None:
    assert context_from(name, text, ratio=1.0) == text
    assert context_from(name, text, ratio=0).strip() == ""


@pytest.mark.parametrize("name", CUTTERS)
@given(
    words=st.lists(st.text("abcé", min_size=1, max_size=8), min_size=2, max_size=60),
    ratio=st.floats(0, 1),
)
def test_the_share_kept_is_exact_to_the_word(name: str, words: list[str], ratio: float) -> None:
    kept = context_from(name, " ".join(words), ratio=ratio).split()
    assert abs(len(kept) - ratio * len(words)) <= 0.5 + 1e-9
    assert is_subsequence(kept, words)


@pytest.mark.parametrize("name", CUTTERS)
def test_text_without_spaces_is_cut_by_characters(name: str) -> None:
    text = "東京は日本の首都である"
    kept = context_from(name, text, ratio=0.5)
    assert len(kept) == 6
    assert is_subsequence(list(kept), list(text))


@pytest.mark.parametrize("name", CUTTERS)
def test_paragraphs_of_chinese_are_cut_inside_the_paragraph(name: str) -> None:
    text = "北京是中国的首都\n上海是最大的城市"
    kept = context_from(name, text, ratio=0.25)
    assert len(kept.replace("\n", "")) == 4


def test_a_long_run_with_one_line_break_can_still_be_halved() -> None:
    text = "a" * 100_000 + "\n" + "a" * 100_000
    assert abs(len(keep_beginning(text, 0.25)) - 50_000) <= 64


def test_random_drop_depends_on_the_id_its_type_and_the_seed() -> None:
    text = " ".join(str(number) for number in range(200))
    kept = context_from("random-drop", text, id=1)
    assert kept == context_from("random-drop", text, id=1)
    assert kept != context_from("random-drop", text, id="1")
    assert kept != context_from("random-drop", text, id=2)
    assert kept != context_from("random-drop", text, id=1, seed=1)


def test_random_drop_is_the_same_in_another_process() -> None:
    program = (
        "from cbench_server.systems import BUILTINS;"
        f"print(BUILTINS['random-drop']().process({{'id': 'x', 'context': {TEN!r}}})['context'])"
    )
    other = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert other.stdout.strip() == context_from("random-drop", TEN, id="x")


def test_random_drop_keeps_every_word_equally_often() -> None:
    words = [str(number) for number in range(20)]
    counts = dict.fromkeys(words, 0)
    for seed in range(2000):
        for word in keep_at_random(" ".join(words), 0.5, random.Random(seed)).split():
            counts[word] += 1
    assert all(850 < count < 1150 for count in counts.values())


@pytest.mark.parametrize("ratio", [-0.1, 1.01, float("nan"), "0.5", True, None])
@pytest.mark.parametrize("name", CUTTERS)
def test_a_ratio_that_is_no_share_is_refused(name: str, ratio: Any) -> None:
    with pytest.raises(InvalidInput, match=r"ratio is .* from 0 to 1"):
        BUILTINS[name](ratio=ratio)


def test_a_context_that_is_no_text_is_refused() -> None:
    with pytest.raises(InvalidInput, match="context is list"):
        BUILTINS["identity"]().process({"id": 1, "context": ["a"]})
