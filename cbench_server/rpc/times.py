"""Durations and times of the contract."""

from typing import Any

_LONGEST_S = 315_576_000_000.0


def set_seconds(message: Any, seconds: float) -> None:
    """Set a Duration or Timestamp; by hand, which takes a quarter of FromNanoseconds' time."""
    if not -_LONGEST_S <= seconds <= _LONGEST_S:
        # A number that a process made up must not make what is stored unreadable.
        seconds = 0.0 if seconds != seconds else max(-_LONGEST_S, min(_LONGEST_S, seconds))
    whole, part = divmod(round(seconds * 1e9), 1_000_000_000)
    if whole:
        message.seconds = whole
    message.nanos = part


def seconds_of(message: Any, name: str) -> float | None:
    """Read a Duration or Timestamp, None where it is unset."""
    return getattr(message, name).ToNanoseconds() / 1e9 if message.HasField(name) else None
