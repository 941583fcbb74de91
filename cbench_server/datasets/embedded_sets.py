"""The datasets that come inside the package, written for it: they need no network."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from cbench_server.datasets.files import iterate_file
from cbench_server.datasets.record import DatasetRecord
from cbench_server.types import Example

_FOLDER = Path(__file__).parent / "embedded"


def _load(file_name: str, config: str) -> Iterator[Example]:
    return iterate_file(_FOLDER / file_name)


MINI_QA = DatasetRecord(
    name="mini-qa",
    load=partial(_load, "mini-qa.jsonl"),
    description="Short passages, each with one question: names, numbers, dates, yes/no, lists.",
    family="embedded",
    evaluators=("answer-quality", "context-retention"),
    embedded=True,
    size=48,
    licence="MIT",
    source="written for cbench-server",
)

LONG_NOTES = DatasetRecord(
    name="long-notes",
    load=partial(_load, "long-notes.jsonl"),
    description="Long invented documents (logs, minutes, manuals) with one fact to find in each.",
    family="embedded",
    evaluators=("answer-quality", "context-retention"),
    embedded=True,
    size=40,
    licence="MIT",
    source="written for cbench-server with scripts/make_long_notes.py",
)

RECORDS = (MINI_QA, LONG_NOTES)
