"""What a launched system prints: kept in a file, shown with its name, remembered at its end."""

import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from cbench_server.texts.grid import printable

_LAST_LINES = 5
_SHOWN_EACH_SECOND = 50
_MAX_LINE = 4096
_MAX_FILE = 64 * 2**20


class Voice:
    """Says lines to the person: through what shows progress while there is such, else on stderr."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.is_quiet = quiet
        self.through: Callable[[str], None] | None = None

    def say(self, text: str) -> None:
        """Say something that must not be missed."""
        line = printable(text)
        if self.through is not None and not self.is_quiet:
            self.through(line)
        else:
            # In one piece: other threads write, too, and print writes the line's end by itself.
            print(f"{line}\n", end="", file=sys.stderr, flush=True)

    def chat(self, text: str) -> None:
        """Say something, unless quiet is wanted."""
        if not self.is_quiet:
            self.say(text)


class Output:
    """All that one system prints, over all its lives."""

    def __init__(self, label: str, log: Path, voice: Voice) -> None:
        self.label = label
        self.log = log
        self.is_shown = True
        self._voice = voice
        self._file: BinaryIO = log.open("ab")
        self._last: deque[str] = deque(maxlen=_LAST_LINES)
        self._lock = threading.Lock()
        self._second = 0
        self._shown = 0

    def read(self, pipe: Any, take: Callable[[str], bool] = lambda line: False) -> threading.Thread:
        """Read a pipe to its end in a thread; `take` says which lines are not for showing."""
        thread = threading.Thread(
            target=self._read, args=(pipe, take), name="cbench-launch", daemon=True
        )
        thread.start()
        return thread

    @property
    def last_words(self) -> str:
        """The last lines of it, as a sentence."""
        with self._lock:
            lines = list(self._last)
        return f" Its last lines: {' / '.join(lines)}" if lines else ""

    def forget_last_words(self) -> None:
        """Begin anew: what comes next is another life's."""
        with self._lock:
            self._last.clear()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._file.close()

    def _read(self, pipe: Any, take: Callable[[str], bool]) -> None:
        rest = b""
        with pipe:
            while part := pipe.read1(65536):
                self._keep(part)
                # A line that is written over ends in a carriage return.
                *lines, rest = (rest + part).replace(b"\r", b"\n").split(b"\n")
                if len(rest) > _MAX_LINE:
                    lines, rest = [*lines, rest], b""
                for line in lines:
                    self._hear(line, take)
        self._hear(rest, take)

    def _keep(self, part: bytes) -> None:
        with self._lock:
            if not self._file.closed and self._file.tell() < _MAX_FILE:
                self._file.write(part)
                self._file.flush()

    def _hear(self, raw: bytes, take: Callable[[str], bool]) -> None:
        line = printable(raw[:_MAX_LINE].decode("utf-8", "replace").rstrip())
        if not line.strip() or take(line):
            return
        with self._lock:
            self._last.append(line.strip())
            now = int(time.monotonic())
            if now != self._second:
                self._second, self._shown = now, 0
            self._shown += 1
            shown = self._shown
        if not self.is_shown:
            return
        if shown <= _SHOWN_EACH_SECOND:
            self._voice.chat(f"{self.label}: {line}")
        elif shown == _SHOWN_EACH_SECOND + 1:
            self._voice.chat(f"{self.label}: (more than can be shown; all of it is in {self.log})")
