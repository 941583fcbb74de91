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


def protocol_of_file(first: Example) -> DatasetProtocol | None:
    """Return what a file is measured by whose first row is a benchmark's; None for any other."""
    if "context" in first or "turns" in first:
        return None
    for is_of, record in ((is_locomo, LOCOMO), (is_longmemeval, LONGMEMEVAL)):
        if is_of(first):
            own = differs(f"A file of the user's in the form that {record.name} is published in.")
            return replace(record.protocol_of(""), data=own)
    return None
