"""Lead: the first sentences or words of a text."""

import pytest

from cbench_server.errors import InvalidInput
from cbench_server.systems.lead import Lead

TEXT = (
    'Dr. A. Moss came at 9 a.m. from Dover. "Was it late?" No! It cost 3.5 million.\n\n'
    "A new paragraph without a dot\n\nThe end."
)


@pytest.mark.parametrize(
    ("n", "beginning"),
    [
        (1, "Dr. A. Moss came at 9 a.m. from Dover."),
        (2, 'Dr. A. Moss came at 9 a.m. from Dover. "Was it late?"'),
        (4, TEXT.split("\n\n")[0]),
        (5, TEXT.rsplit("\n\n", 1)[0]),
        (99, TEXT),
    ],
)
def test_sentences_end_where_a_reader_ends_them(n: int, beginning: str) -> None:
    answer = Lead(n=n).process({"id": 7, "context": TEXT, "question": "?"})
    assert answer == {"id": 7, "context": beginning, "question": "?"}


def test_other_scripts_words_and_nothing() -> None:
    assert Lead(n=1).beginning_of("山は高い。川は長い。") == "山は高い。"
    assert Lead(n=4, unit="words").beginning_of(TEXT) == "Dr. A. Moss came"
    assert Lead(n=400, unit="words").beginning_of(TEXT) == TEXT
    assert Lead().beginning_of("  ") == Lead(unit="words").beginning_of("") == ""
    assert Lead().process({"id": 1}) == {"id": 1, "context": ""}


@pytest.mark.parametrize("options", [{"n": 0}, {"n": True}, {"unit": "lines"}])
def test_bad_options_are_named(options: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(options))):
        Lead(**options)  # type: ignore[arg-type] # that is the point
