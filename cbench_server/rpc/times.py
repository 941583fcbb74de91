"""Durations and times of the contract."""

from typing import Any


def set_seconds(message: Any, seconds: float) -> None:
    """Set a Duration or Timestamp; by hand, which takes a quarter of FromNanoseconds' time."""
    whole, part = divmod(round(seconds * 1e9), 1_000_000_000)
    if whole:
        message.seconds = whole
    message.nanos = part


def seconds_of(message: Any, name: str) -> float | None:
    """Read a Duration or Timestamp, None where it is unset."""
    return getattr(message, name).ToNanoseconds() / 1e9 if message.HasField(name) else None
