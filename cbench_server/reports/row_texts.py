"""Texts of a row: what was asked, what a system read, what it left and what came back."""

from typing import Any

from cbench_server.reports.report import Original
from cbench_server.results import EvalRow, strict_json

TEXTS = ("question", "context", "answer", "processed_context", "response")
"""Columns of `--with-texts`: three of the example, two of what the system made of it."""


def texts_of(row: EvalRow, original: Original | None) -> dict[str, str | None]:
    """Return the texts of a row; None for one that it does not have."""
    processed = row.processed or {}
    values = {
        "question": (original or {}).get("question"),
        "context": (original or {}).get("context"),
        "answer": (original or {}).get("answers") or (original or {}).get("answer"),
        "processed_context": processed.get("context"),
        "response": processed.get("response"),
    }
    return {name: as_text(value) for name, value in values.items()}


def as_text(value: Any) -> str | None:
    """Return a value as text: as it is, or as JSON if it is no text."""
    if value is None or isinstance(value, str):
        return value
    return strict_json(value, indent=None)
