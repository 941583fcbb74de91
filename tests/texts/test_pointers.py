"""Retrieval pointers are found in any of their forms, and nothing else is taken for one."""

import pytest

from cbench_server.texts.pointers import count_pointers

ORIGINAL = "The harbour master retrieved the id card 12 of the pilot. See [ref: 4] and <b>this</b>."


@pytest.mark.parametrize(
    "text",
    [
        "[80 rows left out. Retrieve them with hash=9f3a01c2]",
        "<<store:3fa9c1d20b11 12 lines>>",
        "⟦tj:0a1b2c3d⟧",
        "[[chunk:77aa01]] and so on",
        "... (call expand_section with token 'b71c9' for the rest)",
        'more: retrieve_tool_output("call_81a")',
        "{{memo:00ff12}}",
        "To restore the original, use key: k-2041.",
    ],
)
def test_a_pointer_is_found(text: str) -> None:
    assert count_pointers(f"It began at dawn. {text}", ORIGINAL) == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The code of door 7 is zebra7.",
        "They retrieved the chest, and restored the mast by the key of Dover.",
        "[note: decade of cafes] <h1>Facade</h1> {name: deadbeef}",
        '{"id": "9f3a01", "rows": [1, 2, 3]}',
        "Fetch the water. Then go on to page 12.",
    ],
)
def test_ordinary_text_has_none(text: str) -> None:
    assert count_pointers(text, ORIGINAL) == 0


def test_what_the_original_says_is_no_pointer_and_others_are_counted() -> None:
    said = "Retrieve the rest with id a12."
    assert count_pointers(f"{said} And more.", f"He said: {said}") == 0
    assert count_pointers("<<ab:12cd34 x>> text <<ab:77ee00 y>>", "") == 2
