"""Rouge: the same numbers as the rouge-score package."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer, _backtrack_norec, _lcs_table

from cbench_server.evaluators import Rouge
from cbench_server.evaluators.rouge.subsequences import common_places

KINDS = {
    "rouge_1_f1": "rouge1",
    "rouge_2_f1": "rouge2",
    "rouge_l_f1": "rougeL",
    "rouge_lsum_f1": "rougeLsum",
}
PLAIN = RougeScorer([*KINDS.values()])
STEMMING = RougeScorer([*KINDS.values()], use_stemmer=True)


def by_package(scorer: RougeScorer, references: list[str], response: str) -> dict[str, float]:
    best = scorer.score_multi(references, response)
    return {name: best[kind].fmeasure for name, kind in KINDS.items()}


_WORDS = st.lists(
    st.sampled_from(
        ["the", "cat", "Cats", "sat", "running", "RUNS", "x1", "l'été", "İ", "ß", "東京", "—"]
        + ["a", "b", "\n", "\n", "\n\n", "\x00", "\u2028", "flies", "ﬁne", "K"]
    ),
    max_size=40,
)
_TEXTS = st.one_of(st.text(max_size=60), _WORDS.map(" ".join), _WORDS.map("".join))


@given(st.lists(_TEXTS, min_size=1, max_size=3), _TEXTS)
def test_it_equals_the_package(references: list[str], response: str) -> None:
    kept = [reference for reference in references if reference.strip()]
    original, processed = {"answers": references}, {"response": response}
    for scorer, stemmed in ((PLAIN, False), (STEMMING, True)):
        evaluator = Rouge(use_stemmer=stemmed, strip_thinking=False)
        expected = by_package(scorer, kept, response) if kept else {}
        assert evaluator.score(original, processed) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("size", [63, 64, 65, 255, 256, 257, 600])
def test_long_texts_equal_the_package_too(size: int) -> None:
    chance = random.Random(size)
    words = [f"w{number}" for number in range(size // 8 + 2)] + ["\n"] * (size // 64)
    gold, response = (" ".join(chance.choices(words, k=size)) for _ in range(2))
    found = Rouge().score({"answer": gold}, {"response": response})
    assert found == pytest.approx(by_package(PLAIN, [gold], response), abs=1e-12)


@pytest.mark.parametrize("rows", [1, 255, 257, 700])
def test_the_subsequence_is_the_one_that_walking_back_finds(rows: int) -> None:
    chance = random.Random(rows)
    for size in (1, 8, 300):
        candidate, reference = (chance.choices("abcdefgh", k=count) for count in (rows, size))
        table: Any = _lcs_table(reference, candidate)
        places = _backtrack_norec(table, reference, candidate)
        assert common_places(candidate, reference)[::-1] == places
