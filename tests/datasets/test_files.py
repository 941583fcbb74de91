"""Examples from local files: what is read, what is refused, and how it is said."""

import csv
import gzip
import io
import json
import math
import tracemalloc
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench_server.datasets import FILE_SUFFIXES, iterate_file
from cbench_server.datasets.readers.jsonl_file import decode_object
from cbench_server.datasets.readers.lines import BadLines, numbered_lines
from cbench_server.errors import BadDataset

_SUFFIXES = (
    ".jsonl, .jsonl.gz, .json, .json.gz, .csv, .csv.gz, .tsv, .tsv.gz, .parquet, .parquet.gz"
)

_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, bytes], Path]:
    def write(name: str, content: bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write


@given(example=st.dictionaries(_TEXT, _VALUES, max_size=5), is_ascii=st.booleans())
def test_what_json_wrote_is_read_back_equal(example: dict[str, Any], is_ascii: bool) -> None:
    line = json.dumps(example, ensure_ascii=is_ascii).encode() + b"\n"
    found = decode_object(line)
    # repr also tells 1 from 1.0 and from True.
    assert repr(found) == repr(example)


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".JSONL"])
def test_a_jsonl_file_gives_its_objects_in_order(
    write: Callable[[str, bytes], Path], suffix: str
) -> None:
    examples = [
        {"id": 2**53 + 1, "context": "naïve 漢字 🙂", "nested": {"a": [None, True, 1.5]}},
        {"id": -(10**40), "context": "line\nbreak\u2028inside"},
    ]
    text = "\n\n".join(json.dumps(example, ensure_ascii=False) for example in examples) + "\n \r\n"
    content = b"\xef\xbb\xbf" + text.encode()
    path = write("x" + suffix, gzip.compress(content) if suffix.endswith("gz") else content)
    assert list(iterate_file(path)) == examples


def test_nan_and_infinity_are_read(write: Callable[[str, bytes], Path]) -> None:
    (example,) = iterate_file(write("x.jsonl", b'{"a": NaN, "b": -Infinity, "c": "\xc3\xa9"}'))
    assert math.isnan(example["a"])
    assert example["b"] == -math.inf
    assert example["c"] == "é"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"a" 1}', "invalid JSON: Expecting ':' delimiter at column 6"),
        (b"{'a': 1}", "invalid JSON: Expecting property name enclosed in double quotes at col"),
        (b'{"a": 1} {"a": 2}', "invalid JSON: Extra data at column 10"),
        (b'{"a": "x', "invalid JSON: Unterminated string starting at column 7"),
        (b'{"a": "\x01"}', "invalid JSON: Invalid control character at column 8"),
        (b'{"a": "\xff"}', "invalid UTF-8: byte 0xff at column 8"),
        (b'{"a": "\\ud800"}', "invalid text: \\ud800 is half of a surrogate pair"),
        (b'{"a": ' + b"9" * 5000 + b"}", "invalid JSON: an integer has too many digits"),
        (b'{"a": ' + b"[" * 200_000, "invalid JSON: nested too deeply"),
        (b"[1, 2]", "not an object but an array"),
        (b'"text"', "not an object but a string"),
        (b"12", "not an object but a number"),
        (b"1.5", "not an object but a number"),
        (b"true", "not an object but true or false"),
        (b"null", "not an object but null"),
    ],
    ids=[
        "no-colon",
        "single-quotes",
        "two-objects",
        "cut-off",
        "control",
        "utf-8",
        "surrogate",
        "digits",
        "deep",
        "array",
        "string",
        "integer",
        "float",
        "bool",
        "null",
    ],
)
def test_a_bad_line_is_named_with_its_file_line_and_reason(
    write: Callable[[str, bytes], Path], line: bytes, reason: str
) -> None:
    path = write("x.jsonl", b'{"a": 0}\n\n' + line + b"\n")
    examples = iterate_file(path)
    assert next(examples) == {"a": 0}
    with pytest.raises(BadDataset) as caught:
        next(examples)
    assert str(caught.value).startswith(f"{path}, line 3: {reason}")


def test_bad_lines_are_skipped_and_reported_when_asked(
    write: Callable[[str, bytes], Path],
) -> None:
    path = write("x.jsonl", b'{"a": 1}\nnope\n{"a": 2}\n[]\n{"a": 3}')
    reported: list[BadDataset] = []
    examples = iterate_file(path, skip_bad_lines=True, on_bad_line=reported.append)
    assert list(examples) == [{"a": 1}, {"a": 2}, {"a": 3}]
    assert [str(error) for error in reported] == [
        f"{path}, line 2: invalid JSON: Expecting value at column 1",
        f"{path}, line 4: not an object but an array",
    ]


def test_a_line_beyond_the_limit_is_passed_over_without_being_held() -> None:
    reported: list[BadDataset] = []
    bad_lines = BadLines(Path("x.jsonl"), skip=True, on_bad_line=reported.append)
    stream = io.BytesIO(b"12345678\n" + b"x" * 50 + b"\nshort\n" + b"y" * 9)
    lines = list(numbered_lines(stream, bad_lines, max_bytes=8))
    assert lines == [(1, b"12345678\n"), (3, b"short\n")]
    assert [str(error) for error in reported] == [
        "x.jsonl, line 2: longer than 8 bytes",
        "x.jsonl, line 4: longer than 8 bytes",
    ]


@pytest.mark.parametrize("damage", ["cut", "changed", "not-gzip"])
def test_damaged_gzip_data_is_named(write: Callable[[str, bytes], Path], damage: str) -> None:
    packed = gzip.compress(b'{"context": "some words"}\n' * 3)
    content = {
        "cut": packed[:-12],
        "changed": packed[:-6] + b"??" + packed[-4:],
        "not-gzip": b'{"context": "plain"}\n',
    }[damage]
    path = write("x.jsonl.gz", content)
    with pytest.raises(BadDataset, match="damaged gzip data") as caught:
        list(iterate_file(path))
    assert str(caught.value).startswith(f"{path}, after line ")


def test_a_csv_cell_stays_text_but_for_lists_of_answers_and_choices(
    write: Callable[[str, bytes], Path],
) -> None:
    stream = io.StringIO()
    rows = csv.writer(stream)
    rows.writerow(["id", "context", "answers", "choices", "note"])
    rows.writerow(["007", "two\nlines, a comma", '["a", "b"]', "[not json", '["a"]'])
    rows.writerow([])
    rows.writerow(["1.50", 'say "hé"', "plain", r'["\ud800"]', "true"])
    path = write("x.csv", b"\xef\xbb\xbf" + stream.getvalue().encode())
    assert list(iterate_file(path)) == [
        {
            "id": "007",
            "context": "two\nlines, a comma",
            "answers": ["a", "b"],
            "choices": "[not json",
            "note": '["a"]',
        },
        {
            "id": "1.50",
            "context": 'say "hé"',
            "answers": "plain",
            "choices": r'["\ud800"]',
            "note": "true",
        },
    ]


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".tsv", ".tsv.gz", ".json", ".json.gz"])
def test_every_format_gives_the_same_examples(
    write: Callable[[str, bytes], Path], suffix: str
) -> None:
    examples = [{"id": "1", "context": "a, b", "answers": ["x", "y"]}, {"id": "2", "context": "c"}]
    examples[1]["answers"] = []
    if suffix.startswith(".json"):
        text = json.dumps(examples, indent=1)
    else:
        target = io.StringIO()
        delimiter = "\t" if suffix.startswith(".tsv") else ","
        rows = csv.writer(target, delimiter=delimiter)
        rows.writerow(["id", "context", "answers"])
        for each in examples:
            rows.writerow([each["id"], each["context"], json.dumps(each["answers"])])
        text = target.getvalue()
    content = text.encode()
    path = write(f"x{suffix}", gzip.compress(content) if suffix.endswith("gz") else content)
    assert [*iterate_file(path)] == examples
    if suffix.endswith("gz"):
        damaged = write(f"y{suffix}", path.read_bytes()[:-9])
        with pytest.raises(BadDataset, match="damaged gzip data"):
            list(iterate_file(damaged))


def test_a_csv_cell_may_be_as_long_as_a_book(write: Callable[[str, bytes], Path]) -> None:
    path = write("x.csv", b"context\n" + b"word " * 100_000 + b"\n")
    assert [len(example["context"]) for example in iterate_file(path)] == [500_000]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (b"1,2,3", "the row has 3 cells, the header 2"),
        (b"1", "the row has 1 cells, the header 2"),
        (b"1,caf\xe9", "invalid UTF-8: byte 0xe9 in cell 2"),
        (b'1,"two"words', "',' expected after '\"'"),
        (b'1,"never closed', "unexpected end of data"),
    ],
    ids=["too-many", "too-few", "utf-8", "quote", "open-quote"],
)
def test_a_bad_csv_row_is_named_by_the_line_it_begins_on(
    write: Callable[[str, bytes], Path], row: bytes, reason: str
) -> None:
    path = write("x.csv", b'id,context\n0,"two\nlines"\n' + row + b"\n")
    examples = iterate_file(path)
    assert next(examples) == {"id": "0", "context": "two\nlines"}
    with pytest.raises(BadDataset) as caught:
        next(examples)
    assert str(caught.value) == f"{path}, line 4: {reason}"


def test_bad_csv_rows_are_skipped_when_asked(write: Callable[[str, bytes], Path]) -> None:
    path = write("x.csv", b'id,context\n1\n2,\xff\n3,"x"y\n4,fine\n')
    assert list(iterate_file(path, skip_bad_lines=True)) == [{"id": "4", "context": "fine"}]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "{path} is empty; it must begin with a header row"),
        (b"\n\n", "{path} is empty; it must begin with a header row"),
        (b"id,context,id\n", '{path}, header row: the column "id" occurs twice; rename one'),
        (b"id,\xff\n", "{path}, header row: invalid UTF-8: byte 0xff in cell 2"),
    ],
    ids=["empty", "blank", "twice", "utf-8"],
)
def test_a_csv_header_that_cannot_be_used_is_named(
    write: Callable[[str, bytes], Path], content: bytes, message: str
) -> None:
    path = write("x.csv", content)
    with pytest.raises(BadDataset) as caught:
        list(iterate_file(path))
    assert str(caught.value) == message.format(path=path)


def test_a_parquet_file_gives_plain_values(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows: list[dict[str, Any]] = [
        {"id": 2**62 + number, "context": f"text {number}", "answers": ["a", None], "at": None}
        for number in range(100)
    ]
    rows[0] |= {"at": {"day": date(2024, 2, 29), "price": Decimal("1.50"), "raw": b"\x00"}}
    path = tmp_path / "x.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    found = list(iterate_file(path))
    assert found[0]["at"] == {"day": "2024-02-29", "price": "1.50", "raw": b"\x00"}
    assert found[1:] == rows[1:]
    packed = tmp_path / "x.parquet.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert list(iterate_file(packed)) == found
    packed.write_bytes(packed.read_bytes()[:-100])
    with pytest.raises(BadDataset, match="damaged gzip data"):
        list(iterate_file(packed))


def test_a_parquet_file_that_is_none_is_named(write: Callable[[str, bytes], Path]) -> None:
    pytest.importorskip("pyarrow")
    path = write("x.parquet", b'{"context": "no"}\n')
    with pytest.raises(BadDataset, match="is not a readable parquet file") as caught:
        list(iterate_file(path))
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent.jsonl", "{path} does not exist; check the path"),
        ("x.txt", f"the format of {{path}} is not known; its name must end in {_SUFFIXES}"),
        ("x.xlsx.gz", f"the format of {{path}} is not known; its name must end in {_SUFFIXES}"),
        ("folder", f"{{path}} holds no file that ends in {_SUFFIXES}; check the path"),
        ("folder.jsonl", f"{{path}} holds no file that ends in {_SUFFIXES}; check the path"),
        ("absent-*.jsonl", f"{{path}} holds no file that ends in {_SUFFIXES}; check the path"),
    ],
    ids=["absent", "text", "other-gz", "directory", "directory-with-suffix", "pattern"],
)
def test_a_path_that_cannot_be_a_dataset_is_refused_at_once(
    tmp_path: Path, name: str, message: str
) -> None:
    path = tmp_path / name
    if name.startswith("folder"):
        path.mkdir()
    with pytest.raises(BadDataset) as caught:
        iterate_file(path)
    assert str(caught.value) == message.format(path=path)
    assert ", ".join(FILE_SUFFIXES) == _SUFFIXES


@pytest.mark.parametrize("name", ["x.jsonl", "x.csv"])
def test_a_large_file_streams_in_flat_memory(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    words = "some words of a long context " * 350
    line = f'{{"context": "{words}"}}\n' if name.endswith(".jsonl") else f'"{words}"\n'
    with path.open("w", encoding="utf-8") as stream:
        if name.endswith(".csv"):
            stream.write("context\n")
        for _ in range(5000):
            stream.write(line)
    assert path.stat().st_size > 50_000_000
    tracemalloc.start()
    try:
        count = sum(1 for _ in iterate_file(path))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 5000
    assert peak < 2_000_000
