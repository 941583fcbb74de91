"""Rows that do not fit into a message: they are sent without what makes them too large."""

from collections.abc import Iterable

from cbench_client._gen.cbench.v1 import bench_pb2
from cbench_server.results import TOO_LARGE_TO_SEND

# What can be had elsewhere comes first: of a run as a file, of a report, of the dataset.
_PARTS = ("original", "processed", "metadata", "evaluator_notes", "usage", "reader_usage")
# For the rest of the message, such as the token of the next page.
_REST_BYTES = 65_536


def fit(rows: Iterable[bench_pb2.EvalRow], max_message_bytes: int) -> None:
    """Leave out, and mark as left out, what is too large; an example may have 128 MB, twice."""
    for row in rows:
        for part in _PARTS:
            if row.ByteSize() <= max_message_bytes - _REST_BYTES:
                break
            row.ClearField(part)
            if TOO_LARGE_TO_SEND not in row.marks:
                row.marks.append(TOO_LARGE_TO_SEND)
