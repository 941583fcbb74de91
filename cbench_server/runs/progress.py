"""Progress of a run, for a person: bars on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Protocol, Self, TextIO

_LINE_EVERY_S = 5.0


class ProgressDisplay(Protocol):
    """Shows progress while its context lasts, on stderr."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def advance(self, system: str, rows: int, failed: int) -> None:
        """Count rows of a system as done, some of them failed."""
        ...

    def set(self, system: str, completed: int, failed: int, total: int | None) -> None:
        """Show where a system stands."""
        ...

    def note(self, text: str) -> None:
        """Show a line above the progress."""
        ...


def open_progress(
    wanted: bool, totals: Mapping[str, int | None], stream: TextIO | None = None
) -> ProgressDisplay:
    """Choose the display that suits the stream."""
    stream = stream or sys.stderr
    if not wanted:
        return _Silent()
    if stream.isatty():
        return _Bars(totals, stream)
    return _Lines(totals, stream)


class _Counts:
    """Rows done, failed and in all, by system."""

    def __init__(self, totals: Mapping[str, int | None]) -> None:
        self.totals = dict(totals)
        self.completed = dict.fromkeys(totals, 0)
        self.failed = dict.fromkeys(totals, 0)
        # Where each system stood when it was first seen: a resumed run has
        # rows that were not made at this run's pace.
        self._first: dict[str, tuple[float, int]] = {
            system: (time.monotonic(), 0) for system in totals
        }

    def advance(self, system: str, rows: int, failed: int) -> None:
        self.completed[system] = self.completed.get(system, 0) + rows
        self.failed[system] = self.failed.get(system, 0) + failed

    def set(self, system: str, completed: int, failed: int, total: int | None) -> None:
        self._first.setdefault(system, (time.monotonic(), completed))
        self.completed[system], self.failed[system] = completed, failed
        self.totals[system] = total

    def rate(self, system: str) -> float:
        """Rows per second since the system was first seen."""
        since, base = self._first.get(system, (time.monotonic(), 0))
        return (self.completed[system] - base) / max(1e-3, time.monotonic() - since)

    def seconds_left(self) -> float | None:
        """Return the time the slowest system still needs, None if that cannot be told."""
        longest = 0.0
        for system, completed in self.completed.items():
            total, rate = self.totals.get(system), self.rate(system)
            if total is None or (completed < total and not rate):
                return None
            if completed < total:
                longest = max(longest, (total - completed) / rate)
        return longest


class _Silent:
    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def advance(self, system: str, rows: int, failed: int) -> None:
        pass

    def set(self, system: str, completed: int, failed: int, total: int | None) -> None:
        pass

    def note(self, text: str) -> None:
        pass


class _Lines:
    """A line every few seconds, and one at the end."""

    def __init__(self, totals: Mapping[str, int | None], stream: TextIO) -> None:
        self._counts = _Counts(totals)
        self._stream = stream
        self._printed_at = time.monotonic()
        self._printed = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._print(is_last=True)

    def advance(self, system: str, rows: int, failed: int) -> None:
        self._counts.advance(system, rows, failed)
        self._print_if_due()

    def set(self, system: str, completed: int, failed: int, total: int | None) -> None:
        self._counts.set(system, completed, failed, total)
        self._print_if_due()

    def note(self, text: str) -> None:
        print(text, file=self._stream, flush=True)

    def _print_if_due(self) -> None:
        if time.monotonic() - self._printed_at >= _LINE_EVERY_S:
            self._print()

    def _print(self, *, is_last: bool = False) -> None:
        self._printed_at = time.monotonic()
        counts = self._counts
        line = "  ".join(self._part(system) for system in counts.completed)
        if not line or line == self._printed:
            return
        self._printed = line
        left = None if is_last else counts.seconds_left()
        self.note(line + (f"  about {_span(left)} left" if left else ""))

    def _part(self, system: str) -> str:
        counts = self._counts
        total, failed = counts.totals.get(system), counts.failed.get(system, 0)
        done = f"{system} {counts.completed[system]}/{total if total is not None else '?'}"
        return f"{done} ({failed} failed)" if failed else done


class _Bars:
    """One bar a system, with rate, failures and time left."""

    def __init__(self, totals: Mapping[str, int | None], stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        self._counts = _Counts(totals)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TextColumn("[red]{task.fields[failed]}"),
            TimeRemainingColumn(),
            console=Console(file=stream),
            refresh_per_second=8,
        )
        self._bars: dict[str, Any] = {}
        for system, total in totals.items():
            self._add(system, total)

    def _add(self, system: str, total: int | None) -> None:
        from rich.markup import escape

        self._bars[system] = self._progress.add_task(
            escape(system), total=total, rate="", failed=""
        )

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def advance(self, system: str, rows: int, failed: int) -> None:
        self._counts.advance(system, rows, failed)
        self._show(system)

    def set(self, system: str, completed: int, failed: int, total: int | None) -> None:
        self._counts.set(system, completed, failed, total)
        if system not in self._bars:
            self._add(system, total)
        self._show(system)

    def note(self, text: str) -> None:
        self._progress.console.print(text, markup=False, highlight=False)

    def _show(self, system: str) -> None:
        counts = self._counts
        failed = counts.failed.get(system, 0)
        self._progress.update(
            self._bars[system],
            completed=counts.completed[system],
            total=counts.totals.get(system),
            rate=f"{counts.rate(system):,.0f} rows/s",
            failed=f"{failed} failed" if failed else "",
        )


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))}s"
    minutes = round(seconds / 60)
    return f"{minutes}m" if minutes < 90 else f"{minutes // 60}h{minutes % 60:02d}m"
