"""Local models of a run: what the client that serves them says, as part of the run's config.

The client says it by labels, which is all that the contract has for it; here it becomes a record
that figures can be repeated by: model, digest of its file, window, threads, seed.
"""

from collections.abc import Mapping
from itertools import count
from typing import Any

_LABEL = "local_model"
_WORDS = {"True": True, "False": False}


def served_models(labels: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return what is known of each local model, in the order of the labels."""
    found: list[dict[str, Any]] = []
    for place in count(1):
        suffix = f"_{place}" if place > 1 else ""
        model = labels.get(f"{_LABEL}{suffix}")
        if model is None:
            return found
        settings = labels.get(f"{_LABEL}_settings{suffix}", "")
        found.append(
            {
                "model": model,
                "sha256": labels.get(f"{_LABEL}_sha256{suffix}", ""),
                **dict(_setting(part) for part in settings.split(", ") if "=" in part),
            }
        )
    return found


def _setting(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    return name, _WORDS.get(value, value)
