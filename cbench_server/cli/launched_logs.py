"""What systems printed that were launched for a run: found by what the run says of them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from cbench_server.texts.grid import printable

if TYPE_CHECKING:
    from cbench_server.spec import Run

_LONGEST = 64 * 1024


@dataclass
class LaunchedLog:
    """The log of one launched system, read as far as it goes."""

    label: str
    path: Path
    _file: BinaryIO | None = field(default=None, repr=False)
    _rest: bytes = b""

    def new_lines(self, *, is_over: bool = False) -> Iterator[str]:
        """Yield the lines that came since the last time; the unfinished one, too, at the end."""
        if self._file is None:
            try:
                self._file = self.path.open("rb")
            except OSError:
                return
        while part := self._file.read(_LONGEST):
            *lines, self._rest = (self._rest + part).split(b"\n")
            yield from map(_text, lines)
            if len(self._rest) > _LONGEST:
                yield _text(self._rest)
                self._rest = b""
        if is_over and self._rest:
            yield _text(self._rest)
            self._rest = b""

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def _text(raw: bytes) -> str:
    return printable(raw.decode("utf-8", "replace").rstrip())


def launched_logs(run: "Run") -> list[LaunchedLog]:
    """Return the logs of what was launched for a run on this machine, by this user.

    A run says where they are. What lies elsewhere than such logs do is not opened, since a run
    of another daemon may say anything.
    """
    from cbench_server.daemon.settings import data_home, load_settings

    folder = data_home(load_settings({}).home) / "launched"
    found = {}
    for system in run.config.get("systems", ()):
        path = Path(str(system.get("log") or ""))
        if path.parent == folder and path.suffix == ".log":
            found[path] = LaunchedLog(str(system.get("name", "")), path)
    return [*found.values()]
