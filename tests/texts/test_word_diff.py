"""Differences of texts, word by word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench_server.texts.word_diff import differences, drawn, shortened

TEXTS = st.text("ab \n", max_size=40)


@given(TEXTS, TEXTS)
def test_both_texts_can_be_put_together_again(before: str, after: str) -> None:
    pieces = list(differences(before, after))
    assert "".join(text for kind, text in pieces if kind in "=-") == before
    assert "".join(text for kind, text in pieces if kind in "=+") == after


def test_marks_and_colours() -> None:
    pieces = list(differences("we meet on Monday", "we meet on Tuesday at noon"))
    assert drawn(pieces, in_colour=False) == "we meet on [-Monday-] {+Tuesday at noon+}"
    assert "\x1b[9;31mMonday\x1b[0m" in drawn(pieces, in_colour=True)


def test_long_stretches_lose_their_middle_and_say_so() -> None:
    before = " ".join(str(each) for each in range(1000))
    (kept,) = [text for kind, text in shortened(differences(before, before)) if kind == "…"]
    assert kept == " [… 976 words …]"


@pytest.mark.parametrize("length", [30_000])
def test_texts_that_are_too_long_to_compare_share_their_beginning(length: int) -> None:
    before = "a " * length + "b"
    assert [kind for kind, _ in differences(before, "a " * length + "c")] == ["=", "-", "+"]
