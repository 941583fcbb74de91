"""Progress of a run, for a person: bars on a terminal, plain lines elsewhere."""

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Protocol, Self, TextIO

# In a log the first lines come soon, and later ones seldom: an hour is not worth 700 lines.
_FIRST_LINE_S = 5.0
_LINE_EVERY_S = 60.0
# A pace is that of the last rows: a system may have waited for its turn before them, and one
# or two rows, which it makes alone to be timed, tell nothing of how it goes on.
_PACE_OVER_S = 30.0
_LEAST_PACED = 3


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

    def wait(self, reason: str) -> None:
        """Show what the run waits for; an empty reason ends that."""
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
    if stream.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("CI"):
        return _Bars(totals, stream)
    return _Lines(totals, stream)


class _Counts:
    """Rows done, failed and in all, by system."""

    def __init__(self, totals: Mapping[str, int | None]) -> None:
        self.totals = dict(totals)
        self.completed = dict.fromkeys(totals, 0)
        self.failed = dict.fromkeys(totals, 0)
        # Where each system stood and when, as far back as its pace needs; first when it was first
        # seen: a resumed run has rows that were not made at this run's pace.
        self._stood: dict[str, deque[tuple[float, int]]] = {
            system: deque([(time.monotonic(), 0)]) for system in totals
        }

        # When each got its last row: afterwards the clock would only lower its rate.
        self._last: dict[str, float] = {}

    def advance(self, system: str, rows: int, failed: int) -> None:
        self.completed[system] = self.completed.get(system, 0) + rows
        self.failed[system] = self.failed.get(system, 0) + failed
        self._note(system)

    def set(self, system: str, completed: int, failed: int, total: int | None) -> None:
        self.completed[system], self.failed[system] = completed, failed
        self.totals[system] = total
        self._note(system)

    def _note(self, system: str) -> None:
        now, completed = time.monotonic(), self.completed[system]
        stood = self._stood.setdefault(system, deque())
        if not stood or stood[-1][1] != completed:
            stood.append((now, completed))
        while (
            len(stood) > 2
            and stood[1][0] <= now - _PACE_OVER_S
            and stood[1][1] <= completed - _LEAST_PACED
        ):
            stood.popleft()
        if self.has_all(system):
            self._last.setdefault(system, now)

    def rate(self, system: str) -> float:
        """Rows per second lately; 0 where too few tell of it."""
        if system not in self._stood:
            return 0.0
        since, base = self._stood[system][0]
        until = self._last.get(system, time.monotonic())
        made = self.completed[system] - base
        if made < _LEAST_PACED and not self.has_all(system):
            return 0.0
        return made / max(1e-3, until - since)

    def has_all(self, system: str) -> bool:
        """Whether no further row of a system is expected."""
        return self.completed[system] == self.totals.get(system)

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

    def wait(self, reason: str) -> None:
        pass

    def note(self, text: str) -> None:
        pass


class _Lines:
    """A line now and then, whether rows come or not, and one at the end; for logs and pipes."""

    def __init__(self, totals: Mapping[str, int | None], stream: TextIO) -> None:
        self._counts = _Counts(totals)
        self._stream = stream
        self._printed = ""
        self._reason = ""
        self._waiting_since = 0.0
        self._pause = _FIRST_LINE_S
        self._speaking = threading.Lock()
        self._ended = threading.Event()
        self._clock = threading.Thread(target=self._tick, name="cbench-progress", daemon=True)

    def __enter__(self) -> Self:
        self._clock.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._clock.join()
        self._print(is_last=True)

    def advance(self, system: str, rows: int, failed: int) -> None:
        with self._speaking:
            self._counts.advance(system, rows, failed)

    def set(self, system: str, completed: int, failed: int, total: int | None) -> None:
        with self._speaking:
            self._counts.set(system, completed, failed, total)

    def wait(self, reason: str) -> None:
        if reason != self._reason:
            self.note(f"waiting: {reason}" if reason else "continuing")
        self._reason, self._waiting_since = reason, time.monotonic()

    def note(self, text: str) -> None:
        print(text, file=self._stream, flush=True)

    def _tick(self) -> None:
        while not self._ended.wait(self._pause):
            self._pause = min(_LINE_EVERY_S, self._pause * 2)
            self._print()

    def _print(self, *, is_last: bool = False) -> None:
        with self._speaking:
            counts = self._counts
            line = "  ".join(self._part(system, is_last) for system in counts.completed)
            left = None if is_last or self._reason else counts.seconds_left()
        if self._reason and not is_last:
            waited = _span(time.monotonic() - self._waiting_since)
            line = f"{line}  waiting for {waited}: {self._reason}".lstrip()
        elif left:
            line += f"  about {_span(left)} left"
        if line and line != self._printed:
            self._printed = line
            self.note(line)

    def _part(self, system: str, is_last: bool) -> str:
        counts = self._counts
        total, failed = counts.totals.get(system), counts.failed.get(system, 0)
        done = f"{system} {counts.completed[system]}/{total if total is not None else '?'}"
        is_going_on = not is_last and not self._reason and not counts.has_all(system)
        if is_going_on and (rate := counts.rate(system)):
            done += f" {_pace(rate)}"
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
        self._reason = ""
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

    def wait(self, reason: str) -> None:
        if reason != self._reason:
            self.note(f"waiting: {reason}" if reason else "continuing")
        self._reason = reason
        for system in self._bars:
            self._show(system)

    def note(self, text: str) -> None:
        self._progress.console.print(text, markup=False, highlight=False)

    def _show(self, system: str) -> None:
        counts = self._counts
        failed = counts.failed.get(system, 0)
        is_waiting = self._reason and not counts.has_all(system)
        self._progress.update(
            self._bars[system],
            completed=counts.completed[system],
            total=counts.totals.get(system),
            rate="waiting" if is_waiting else _pace(counts.rate(system)),
            failed=f"{failed} failed" if failed else "",
        )


def _pace(rate: float) -> str:
    """Rows per second, or per minute where they come slowly."""
    if rate >= 10:
        return f"{rate:,.0f} rows/s"
    return f"{rate:.1f} rows/s" if rate >= 0.5 else f"{rate * 60:.1f} rows/min"


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))}s"
    minutes = round(seconds / 60)
    return f"{minutes}m" if minutes < 90 else f"{minutes // 60}h{minutes % 60:02d}m"
