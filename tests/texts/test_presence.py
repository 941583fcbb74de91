"""Presence of answers: what a reader would find, however the text is set."""

import csv
import html
import io
import json
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cbench_server.texts.presence import SearchedText, phrase_of


def is_in(answer: str, text: str) -> bool:
    phrase = phrase_of(answer)
    assert phrase is not None
    return SearchedText(text).contains(phrase)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("Stephen King", "ok,Stephen King"),
        ("Stephen King", '{"name":"Stephen King"}'),
        ("Stephen King", "|Stephen King|"),
        ("Stephen King", "Stephen\nKing"),
        ("Stephen King", r'"Stephen\nKing"'),
        ("Stephen King", "Stephen <b>King</b>"),
        ("Stephen King", "**Stephen** _King_"),
        ("Stephen King", "STEPHEN KING"),
        ("Stephen King", "stephen_king"),
        ("King", "King/Maine"),
        ("King", "King—author"),
        ("King", "King's"),
        ("O'Brien", "O\u2019Brien"),
        ("AT&T", "AT&amp;T"),
        ("Café", r"Caf\u00e9"),
        ("Café", "Cafe\u0301"),
        ("smile \U0001d54f sign", r"smile \ud835\udd4f sign"),
        ("The Beatles", "Beatles"),
        ("Jean-Luc", "Jean Luc"),
        ("7", "seven children"),
        ("seven", '{"children":7}'),
        ("25", "Twenty-Five"),
        ("twenty-five", "25–30"),
        ("1000000", "about 1 million people"),
        ("$1 million", "$1,000,000"),
        ("1.5 million", "**1.5** million"),
        ("1500000", "<b>1.5</b> million"),
        ("1500000", "1.5 <b>million</b>"),
        ("Seven Samurai", "7_samurai"),
        ("One Direction", "one direction"),
        ("2", "two or three"),
        ("1,000", "1000"),
        ("1000", "1,000 of them"),
        ("12,345", '{"n":12345}'),
        ("500", "[2,500]"),
        ("500", "7,2,500"),
        ("2,500", "a,b\n2,500\n"),
        ("1.5 million", "a\r\n1.5 million\r\ntwo km\r\n"),
        ("3.5", "It is 3.5."),
        ("35.0", "35"),
        ("0.5", ".5"),
        ("-5", "x:-5"),
        ("50%", "50 %"),
        ("35 mm", "35mm"),
        ("A380", "the A-380"),
        ("2020", "2020-05-12"),
        ("U.S.", "in the US now"),
        ("U.S.", "in the U.S."),
        ("U.S.A.", "usa"),
        ("東京", "首都は東京です"),
        ("서울", "서울은 크다"),
        ("ｱﾆﾒ", "アニメ"),
    ],
)
def test_an_answer_is_found_however_it_is_set(answer: str, text: str) -> None:
    assert is_in(answer, text)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("35", "3.5"),
        ("35", "3,5"),
        ("35", "35mm"),
        ("35", "35 million"),
        ("5", "twenty-five"),
        ("25", "<td>twenty</td><td>five</td>"),
        ("500", "five hundred thousand"),
        ("1", "one of them"),
        ("one", "1. Introduction"),
        ("1000000", "half a million"),
        ("2", "two thirds"),
        ("7", "the seventh day"),
        ("3.5", "35"),
        ("3.5", "13.5"),
        ("3.5", "3.5.1"),
        ("3.5", "1.3.5"),
        ("5", "3.5"),
        ("5", "x:-5"),
        ("-5", "x: 5"),
        ("500", "2,500 people"),
        ("380", "A380"),
        ("know", "no"),
        ("now", "know"),
        ("New York", "York, New"),
        ("New York", "New Yorkers"),
        ("Jean-Luc", "Jean-Luc-Picard"),
        ("Vitamin A", "Vitamin C"),
        ("U.S.", "it gave us hope"),
        ("大阪", "首都は東京です"),
        ("Cafe", "Café"),
    ],
)
def test_an_answer_is_not_found_where_it_is_not(answer: str, text: str) -> None:
    assert not is_in(answer, text)


@pytest.mark.parametrize("answer", ["", "...", "the", "Yes", "no.", "True", "B", "(c)", "yes!"])
def test_some_answers_cannot_be_looked_for(answer: str) -> None:
    assert phrase_of(answer) is None


# Records in every notation that a compressor may put them into.

Record = dict[str, str | int | float]

_NAMES = (
    "Stephen King",
    "O'Brien",
    "Jean-Luc Picard",
    "Café Müller",
    "AT&T",
    "東京タワー",
    "naïve Bob",
    "Seven Samurai",
    "twenty-five",
    "1.5 million",
    "three hundred and sixty-five days",
)
_FILLERS = (
    "lorem",
    "ipsum dolor",
    "sit, amet",
    "x",
    "größe",
    "北京 大学",
    "two km",
    'say "hi"',
    "a|b",
    "c;d",
)


def _as_prose(records: list[Record]) -> str:
    return "\n\n".join(
        ". ".join(f"Its {key} is {value}" for key, value in record.items()) + "."
        for record in records
    )


def _as_csv(delimiter: str) -> Callable[[list[Record]], str]:
    def written(records: list[Record]) -> str:
        target = io.StringIO()
        writer = csv.DictWriter(target, list(records[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(records)
        return target.getvalue()

    return written


def _as_markdown(records: list[Record]) -> str:
    lines = [" | ".join(records[0]), " | ".join("---" for _ in records[0])]
    lines += [" | ".join(str(v).replace("|", "\\|") for v in record.values()) for record in records]
    return "\n".join(f"| {line} |" for line in lines)


def _as_code(records: list[Record]) -> str:
    return "\n".join(f"row = {record!r}" for record in records)


def _as_html(records: list[Record]) -> str:
    cells = ["".join(f"<td>{html.escape(str(v))}</td>" for v in r.values()) for r in records]
    return "<table>" + "".join(f"<tr>{line}</tr>" for line in cells) + "</table>"


def _as_yaml(records: list[Record]) -> str:
    return "\n".join(
        "\n".join(f"{'- ' if n == 0 else '  '}{k}: {v}" for n, (k, v) in enumerate(record.items()))
        for record in records
    )


def _decomposed(records: list[Record]) -> str:
    return unicodedata.normalize("NFD", _as_prose(records))


NOTATIONS: dict[str, Callable[[list[Record]], str]] = {
    "prose": _as_prose,
    "json": lambda records: json.dumps(records, indent=2, ensure_ascii=False),
    "json-minified": lambda records: json.dumps(records, separators=(",", ":"), ensure_ascii=False),
    "json-ascii": lambda records: json.dumps(records),
    "json-columns": lambda records: json.dumps(
        {"keys": list(records[0]), "rows": [list(r.values()) for r in records]},
        separators=(",", ":"),
    ),
    "csv": _as_csv(","),
    "tsv": _as_csv("\t"),
    "semicolons": _as_csv(";"),
    "markdown": _as_markdown,
    "code": _as_code,
    "html": _as_html,
    "yaml": _as_yaml,
    "decomposed": _decomposed,
    "one-line": lambda records: _as_prose(records).replace("\n", " "),
    "wrapped": lambda records: _as_prose(records).replace(" ", "\n"),
    "capitals": lambda records: _as_prose(records).upper(),
}

_numbers = st.one_of(
    st.integers(10, 999_999), st.integers(100, 99_999).map(lambda number: number / 100)
)
_answers = st.one_of(st.sampled_from(_NAMES), _numbers)
_fillers = st.one_of(st.sampled_from(_FILLERS), _numbers)


def _same_number(a: object, b: object) -> bool:
    return isinstance(a, int | float) and isinstance(b, int | float) and float(a) == float(b)


@given(
    answer=_answers,
    fillers=st.lists(_fillers, min_size=5, max_size=11),
    place=st.integers(0, 100),
    thousands=st.booleans(),
    width=st.sampled_from([1, 2, 3]),
)
def test_every_lossless_notation_keeps_the_answer_and_no_other_text_has_it(
    answer: str | float, fillers: list[str | float], place: int, thousands: bool, width: int
) -> None:
    assume(not any(_same_number(answer, filler) for filler in fillers))
    asked = f"{answer:,}" if thousands and isinstance(answer, int) else str(answer)
    fillers = fillers[: len(fillers) // width * width]
    with_answer = [*fillers]
    with_answer[place % len(fillers)] = answer
    keys = ("alpha", "beta", "gamma")

    def records(values: list[str | float]) -> list[Record]:
        return [
            dict(zip(keys[:width], values[at : at + width], strict=True))
            for at in range(0, len(values), width)
        ]

    for name, notation in NOTATIONS.items():
        assert is_in(asked, notation(records(with_answer))), name
        assert not is_in(asked, notation(records(fillers))), name


@pytest.mark.parametrize("unit", ["1", "1,", "1.", "a.", "<", "\\", "&", "-", " ", "漢", "\u0301"])
def test_a_megabyte_of_anything_is_searched_in_linear_time(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    assert not is_in("Stephen King", text)
    assert not is_in("U.S. 3.5-x", text)
