"""Cuts to a number of tokens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench_server.systems.matched import CUTS, cut_to
from cbench_server.tokens import get_tokenizer

count = get_tokenizer()

words = st.lists(
    st.sampled_from(["a", "the", "Fontainebleau", "x1", "東京", "é", "\n\n", "unbelievably"]),
    max_size=60,
)


@given(words, st.integers(0, 80), st.sampled_from(CUTS), st.integers(0, 4))
def test_a_cut_never_exceeds_its_length_and_leaves_out_no_more_than_it_must(
    parts: list[str], tokens: int, cut: str, seed: int
) -> None:
    text = " ".join(parts)
    kept = cut_to(text, tokens, cut, count, 7, seed)
    assert count(kept) <= max(tokens, 0)
    if tokens >= count(text):
        assert kept == text
    elif cut == "truncate-tail":
        assert text.startswith(kept)
    elif cut == "truncate-head":
        assert text.endswith(kept)


@pytest.mark.parametrize("cut", CUTS)
def test_a_long_text_is_cut_nearly_to_the_token(cut: str) -> None:
    text = " ".join(f"Sentence {number} names the city of Fontainebleau." for number in range(400))
    for tokens in (1, 17, 500, 2_000):
        assert 0 <= tokens - count(cut_to(text, tokens, cut, count, "id", 0)) <= 6


def test_seeds_differ_and_repeat() -> None:
    text = " ".join(map(str, range(200)))
    kept = [cut_to(text, 50, "random-drop", count, "id", seed) for seed in (0, 1, 0)]
    assert kept[0] == kept[2] != kept[1]
