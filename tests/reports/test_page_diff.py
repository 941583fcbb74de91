"""The difference between two contexts, as the page shows it."""

import random

import pytest

from cbench_server.results import EvalRow
from tests.reports.browsing import Page
from tests.reports.stories import Example, story

_WORDS = ("the", "a", "of", "box", "was", "kept", "Zürich", "数据", "42", "—", "e.g.", "\n\n", "")


def _edited(draw: random.Random, text: str) -> str:
    """Drop, add, repeat and move words."""
    words = text.split(" ")
    for _ in range(draw.randrange(1, 12)):
        at = draw.randrange(len(words) + 1)
        end = at + draw.randrange(8)
        change = draw.choice(("drop", "add", "repeat", "move"))
        if change == "drop":
            del words[at:end]
        elif change == "add":
            words[at:at] = draw.choices(_WORDS, k=draw.randrange(6))
        elif change == "repeat":
            words[at:at] = words[at:end]
        else:
            words.extend(words[at:end])
            del words[at:end]
    return " ".join(words)


def _context(number: int) -> str:
    draw = random.Random(number)
    return " ".join(draw.choices(_WORDS, k=draw.choice((0, 1, 5, 80, 3000))))


def test_what_was_kept_and_removed_is_the_original_and_kept_and_added_the_result(
    page: Page,
) -> None:
    pairs: dict[int, tuple[str, str]] = {}

    def answer(row: EvalRow, original: Example) -> Example:
        after = _edited(random.Random(row.ordinal + 1000), original["context"])
        pairs[row.ordinal] = (original["context"], after)
        return {"context": after}

    page.open(story(30, ("only",), context=_context, answer=answer))
    page.open_row()
    for number in range(30):
        page.until_true(f"location.hash === '#row-{number}' && document.querySelector('.content')")
        before, after = pairs[number]
        if before != after:
            assert _shown(page, "del, span") == before
            assert _shown(page, "ins, span") == after
        page.one("#example-title").send_keys("j")


def _shown(page: Page, kinds: str) -> str:
    wanted = ", ".join(f"dialog .diff > {kind}" for kind in kinds.split(", "))
    return "".join(page.texts(wanted))


@pytest.mark.parametrize("words", [4000])
def test_a_long_text_is_compared_word_by_word(page: Page, words: int) -> None:
    def answer(row: EvalRow, original: Example) -> Example:
        kept = original["context"].split(" ")
        return {"context": " ".join(kept[: words // 4] + kept[words // 2 :])}

    def context(number: int) -> str:
        return " ".join(f"w{at % 700}" for at in range(words))

    page.open(story(1, ("only",), context=context, answer=answer))
    page.open_row()
    removed = " ".join(page.texts("dialog .diff del")).split()
    assert len(removed) == words // 4
