"""Files as benchmarks publish them, which become examples without a loader of their own."""

from collections.abc import Iterator
from dataclasses import replace

from cbench_server.datasets.catalog.memory import (
    LOCOMO,
    LONGMEMEVAL,
    is_locomo,
    is_longmemeval,
    locomo_conversation,
    longmemeval_conversation,
)
from cbench_server.datasets.protocol import DatasetProtocol, differs
from cbench_server.types import Example

_FORMS = {LOCOMO.name: (is_locomo, LOCOMO), LONGMEMEVAL.name: (is_longmemeval, LONGMEMEVAL)}


def as_examples(rows: Iterator[Example]) -> Iterator[Example]:
    """Turn rows of `locomo10.json` and of LongMemEval's files into conversations.

    Other rows stay as they are.
    """
    for index, row in enumerate(rows):
        if "context" in row or "turns" in row:
            yield row
        elif is_locomo(row):
            yield locomo_conversation(row, index)
        elif is_longmemeval(row):
            if (example := longmemeval_conversation(row, index)) is not None:
                yield example
        else:
            yield row


def benchmark_of_file(first: Example) -> str:
    """Name the benchmark in whose form a file is, by its first row; empty for any other."""
    if "context" in first or "turns" in first:
        return ""
    return next((name for name, (is_of, _) in _FORMS.items() if is_of(first)), "")


def benchmark_followed(follows: str) -> str:
    """Name the benchmark whose rules a run says that it followed, if files may be in its form."""
    known = {record.protocol_of("").follows: name for name, (_, record) in _FORMS.items()}
    return known.get(follows, "")


def protocol_of_file(benchmark: str) -> DatasetProtocol | None:
    """Return what a file in a benchmark's form is measured by; None for any other file."""
    if not benchmark:
        return None
    _, record = _FORMS[benchmark]
    own = differs(f"A file of the user's in the form that {record.name} is published in.")
    return replace(record.protocol_of(""), data=own)
