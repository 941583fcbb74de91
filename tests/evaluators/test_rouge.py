"""Rouge: the same numbers as the rouge-score package."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench_server.evaluators import Rouge
from cbench_server.evaluators.rouge.subsequences import common_places
from tests.fixtures.rouge_package import TEXTS, by_package

KINDS = {
    "rouge_1_f1": "rouge1",
    "rouge_2_f1": "rouge2",
    "rouge_l_f1": "rougeL",
    "rouge_lsum_f1": "rougeLsum",
}


def expected_of(references: list[str], response: str, *, stemmed: bool = False) -> dict[str, float]:
    best = by_package(KINDS.values(), references, response, stemmed=stemmed)
    return {name: best[kind].fmeasure for name, kind in KINDS.items()}


@given(st.lists(TEXTS, min_size=1, max_size=3), TEXTS)
def test_it_equals_the_package(references: list[str], response: str) -> None:
    kept = [reference for reference in references if reference.strip()]
    original, processed = {"answers": references}, {"response": response}
    for stemmed in (False, True):
        evaluator = Rouge(use_stemmer=stemmed, strip_thinking=False)
        expected = expected_of(kept, response, stemmed=stemmed) if kept else {}
        assert evaluator.score(original, processed) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("size", [63, 64, 65, 255, 256, 257, 600])
def test_long_texts_equal_the_package_too(size: int) -> None:
    chance = random.Random(size)
    words = [f"w{number}" for number in range(size // 8 + 2)] + ["\n"] * (size // 64)
    gold, response = (" ".join(chance.choices(words, k=size)) for _ in range(2))
    found = Rouge().score({"answer": gold}, {"response": response})
    assert found == pytest.approx(expected_of([gold], response), abs=1e-12)


@pytest.mark.parametrize("rows", [1, 255, 257, 700])
def test_the_subsequence_is_the_one_that_walking_back_finds(rows: int) -> None:
    from rouge_score.rouge_scorer import _backtrack_norec, _lcs_table

    chance = random.Random(rows)
    for size in (1, 8, 300):
        candidate, reference = (chance.choices("abcdefgh", k=count) for count in (rows, size))
        table: Any = _lcs_table(reference, candidate)
        places = _backtrack_norec(table, reference, candidate)
        assert common_places(candidate, reference)[::-1] == places
