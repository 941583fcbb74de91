"""Contexts are split into passages, and what is kept of them stands in their order."""

from hypothesis import given
from hypothesis import strategies as st

from cbench_client.adapters.passages import PLACE, joined, passages_of


@given(st.lists(st.text("ab .!?\n", max_size=40), max_size=8).map("\n\n".join))
def test_no_word_is_lost_and_none_is_added(context: str) -> None:
    assert " ".join(passages_of(context, 3)).split() == context.split()


def test_long_paragraphs_are_split_between_sentences() -> None:
    text = "One two three. Four five six. Seven.\n\nEight nine."
    assert passages_of(text, 5) == ["One two three. Four five six.", "Seven.", "Eight nine."]


def test_what_is_kept_stands_in_the_order_of_the_context() -> None:
    kept = [({PLACE: 7}, "later"), ({}, "its own"), ({PLACE: 2}, "earlier")]
    assert joined(kept) == "earlier\n\nlater\n\nits own"
