"""Durations and times of the contract."""

from typing import Any

_LONGEST_S = 315_576_000_000.0
# Of a Timestamp, the years 1 and 9999.
_FIRST_S, _LAST_S = -62_135_596_800.0, 253_402_300_799.0


def set_seconds(message: Any, seconds: float) -> None:
    """Set a Duration or Timestamp; by hand, which takes a quarter of FromNanoseconds' time."""
    if not _FIRST_S <= seconds <= _LAST_S:
        # A number that a process made up must not make what is stored unreadable.
        is_time = message.DESCRIPTOR.name == "Timestamp"
        least, most = (_FIRST_S, _LAST_S) if is_time else (-_LONGEST_S, _LONGEST_S)
        seconds = 0.0 if seconds != seconds else max(least, min(most, seconds))
    whole, part = divmod(round(seconds * 1e9), 1_000_000_000)
    if whole:
        message.seconds = whole
    message.nanos = part


def seconds_of(message: Any, name: str) -> float | None:
    """Read a Duration or Timestamp, None where it is unset."""
    return getattr(message, name).ToNanoseconds() / 1e9 if message.HasField(name) else None
