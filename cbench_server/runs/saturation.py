"""Saturation: memory runs in which nothing had to be remembered or left out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cbench_server.results import EvalRow
from cbench_server.spec import RunNote, RunSpec
from cbench_server.types import Example

_NEARLY_ALL = 0.9
_MOST = 0.5
_TOP_K = ("top_k", "topk", "k", "n_results", "num_results", "limit")


@dataclass
class _Count:
    rows: int = 0
    whole: int = 0
    """Rows for which nearly all of the conversation was handed to a model."""
    longest: int = 0
    asked: int = 0
    covered: int = 0
    """Rows for which as many passages as there are sessions were wanted, or came."""


def session_count(original: Example) -> int:
    """Count the sessions of a conversation; 0 where its turns do not name them."""
    turns = original.get("turns")
    named = {turn.get("session") for turn in turns} if isinstance(turns, list) else set()
    return len(named - {None, ""})


def saturation_notes(
    rows: Iterable[EvalRow],
    spec: RunSpec,
    systems: Sequence[str] = (),
    sessions: Mapping[str, int] | None = None,
) -> list[RunNote]:
    """Say of which systems a run tests the reader, not the memory.

    `systems` are those of the spec by the names of their rows, `sessions` how many
    each conversation has, by its name.
    """
    counts: dict[str, _Count] = {}
    # Controls come after the systems of the spec.
    pairs = zip(systems, spec.systems, strict=False)
    wanted = {name: _top_k(ref.options) for name, ref in pairs}
    for row in rows:
        if row.failure is not None:
            continue
        count = counts.setdefault(row.system, _Count())
        held = (sessions or {}).get(str(row.metadata.get("conversation_id")), 0)
        count.asked += 1
        given, left = row.context_tokens_in, row.context_tokens_out
        passages = wanted.get(row.system) or _passages(row)
        if given and left is not None:
            is_whole = left >= _NEARLY_ALL * given
            count.rows += 1
            count.whole += is_whole
            count.longest = max(count.longest, given)
            if not wanted.get(row.system) and left * held < _MOST * given * passages:
                # On average they are far shorter than a session, such as turns.
                passages = 0
        count.covered += bool(held) and passages >= held
    notes = [
        RunNote(
            "SATURATED",
            f"{system} returned at least 90% of the conversation on {count.whole:,} of "
            f"{count.rows:,} questions: that tests the reader, not the memory.",
            system,
        )
        for system, count in counts.items()
        if count.whole > _MOST * count.rows
    ]
    notes += [
        RunNote(
            "SATURATED",
            f"{system} may return as many passages as the conversation has sessions on "
            f"{count.covered:,} of {count.asked:,} questions: that tests the reader, not the "
            "memory.",
            system,
        )
        for system, count in counts.items()
        if count.covered > _MOST * count.asked and count.whole <= _MOST * count.rows
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


def _top_k(options: Mapping[str, Any]) -> int:
    """Return how many passages a system was told to retrieve at most; 0 if it was not."""
    named = {name.replace("-", "_").lower(): value for name, value in options.items()}
    for name in _TOP_K:
        value = named.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            return int(value)
    return 0


def _passages(row: EvalRow) -> int:
    passages = (row.processed or {}).get("retrieved")
    return len(passages) if isinstance(passages, list | tuple) else 0
