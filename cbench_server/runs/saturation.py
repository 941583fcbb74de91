"""Saturation: memory runs in which nothing had to be remembered or left out."""

from collections.abc import Iterable
from dataclasses import dataclass

from cbench_server.results import EvalRow
from cbench_server.spec import RunNote, RunSpec

_NEARLY_ALL = 0.9
_MOST_ROWS = 0.5


@dataclass
class _Count:
    rows: int = 0
    whole: int = 0
    """Rows for which nearly all of the conversation was handed to a model."""
    longest: int = 0


def saturation_notes(rows: Iterable[EvalRow], spec: RunSpec) -> list[RunNote]:
    """Say of which systems a run tests the reader, not the memory."""
    counts: dict[str, _Count] = {}
    for row in rows:
        if row.failure is not None or not row.context_tokens_in or row.context_tokens_out is None:
            continue
        count = counts.setdefault(row.system, _Count())
        count.rows += 1
        count.whole += row.context_tokens_out >= _NEARLY_ALL * row.context_tokens_in
        count.longest = max(count.longest, row.context_tokens_in)
    notes = [
        RunNote(
            "SATURATED",
            f"{system} returned at least 90% of the conversation on {count.whole:,} of "
            f"{count.rows:,} questions: that tests the reader, not the memory.",
            system,
        )
        for system, count in counts.items()
        if count.whole > _MOST_ROWS * count.rows
    ]
    window = spec.reader.context_window if spec.reader is not None else None
    longest = max((count.longest for count in counts.values()), default=0)
    if window is not None and longest and longest <= window:
        notes.append(
            RunNote(
                "SATURATED",
                f"Every conversation, of {longest:,} tokens at most, fits the reader's window of "
                f"{window:,}: that tests the reader, not the memory.",
            )
        )
    return notes
