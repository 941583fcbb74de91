"""Files as benchmarks publish them, which become examples without a loader of their own."""

from collections.abc import Iterator

from cbench_server.datasets.catalog.memory import (
    is_locomo,
    is_longmemeval,
    locomo_conversation,
    longmemeval_conversation,
)
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
