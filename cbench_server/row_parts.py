"""What a row says about a pair of example and answer, beyond its scores."""

from collections.abc import Mapping
from typing import Any

from cbench_server.types import Example


def text_size(example: Mapping[str, Any]) -> int:
    """Estimate the bytes an example holds, cheaply: its texts, one level of lists deep."""
    size = 0
    for value in example.values():
        if isinstance(value, str | bytes):
            size += len(value)
        elif isinstance(value, list):
            size += sum(len(item) if isinstance(item, str) else 64 for item in value)
        else:
            size += 16
    return size


def primary_score(wanted: str, scores: Mapping[str, float]) -> str:
    """Name the score that counts: the dataset's own, else retention, else the first."""
    for name in (wanted, "answer_retained"):
        if name in scores:
            return name
    return next(iter(scores), "")


def carried(processed: Example, original: Example) -> tuple[str, ...]:
    """Name the texts a system passed on as they were."""
    return tuple(
        [
            name
            for name, value in processed.items()
            if isinstance(value, str) and original.get(name) == value
        ]
    )


def usage_metadata(usage: Mapping[str, Any] | None) -> dict[str, Any]:
    """Give reported usage under the names the model's rows have."""
    if not usage:
        return {}
    return {
        name: usage.get(name) or 0
        for name in ("prompt_tokens", "completion_tokens", "total_tokens")
    }
