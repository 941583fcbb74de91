"""The LexRank example ranks sentences by agreement, and keeps to its budget."""

import runpy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cbench_client import RemoteFailure

ROOT = Path(__file__).resolve().parent.parent
LEXRANK: dict[str, Any] = runpy.run_path(str(ROOT / "examples" / "python" / "lexrank.py"))
summarize, rank, share = LEXRANK["summarize"], LEXRANK["rank"], LEXRANK["share"]

STORY = (
    "The mill stands by the river. The river turns the wheel of the mill. "
    "Rain fell on Tuesday. The wheel of the mill grinds corn. Anna sold her bicycle."
)


def test_without_a_question_the_sentence_most_others_resemble_leads() -> None:
    sentences = STORY.replace("! ", ". ").split(". ")
    ranks = rank(sentences, "", 0.15)
    assert ranks.index(max(ranks)) == 1
    assert ranks.index(min(ranks)) in (2, 4)
    assert sum(ranks) == pytest.approx(1)


def test_the_question_draws_the_summary_to_itself() -> None:
    assert summarize(STORY, "Who sold a bicycle?", 0.2, 0.8) == "Anna sold her bicycle."


def test_sentences_stay_in_their_order() -> None:
    assert summarize(STORY, "the mill", 1.0, 0.5) == STORY


def test_a_text_of_many_sections_is_ranked_section_by_section() -> None:
    text = " ".join(f"Sentence number {number} is here." for number in range(1201))
    kept = summarize(text, "number 7", 0.1, 0.8)
    assert kept.count("Sentence") == 120  # a tenth of 500, 500 and 201
    assert "Sentence number 7 is here." in kept


@given(st.text(st.sampled_from("ab cd. !?\n"), max_size=200), st.floats(0, 1), st.floats(0, 1))
@settings(max_examples=200, deadline=None)
def test_no_more_words_are_kept_than_the_ratio_allows_but_one_sentence(
    text: str, ratio: float, bias: float
) -> None:
    kept = summarize(text, "ab", ratio, bias)
    sentences = summarize(text, "ab", 1.0, bias)
    assert bool(kept) == bool(text.strip())
    longest = max((len(line.split()) for line in sentences.splitlines()), default=0)
    assert len(kept.split()) <= max(ratio * len(text.split()), longest)
    assert summarize(text, "ab", ratio, bias) == kept


@pytest.mark.parametrize("value", [True, "half", -0.1, 1.5, float("nan")])
def test_an_option_that_is_no_share_is_refused_by_name(value: object) -> None:
    with pytest.raises(RemoteFailure, match="ratio is"):
        share({"ratio": value}, "ratio", 0.3)
