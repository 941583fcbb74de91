"""What systems printed that were launched for a run: found by the record beside their files."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from cbench_server.texts.grid import printable

_SUFFIX = ".logs.json"
_LONGEST = 64 * 1024


def logs_record(folder: Path, run_id: str) -> Path:
    """Return the file that says which logs belong to a run."""
    return folder / f"{run_id}{_SUFFIX}"


def write_record(record: Path, logs: Iterable[tuple[str, Path]]) -> None:
    """Write down which logs there are, with the names of what was launched."""
    named = [{"label": label, "log": str(path)} for label, path in logs]
    record.write_text(json.dumps(named))


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


def launched_logs(run_id: str) -> list[LaunchedLog]:
    """Return the logs of what was launched for a run on this machine, by this user."""
    from cbench_server.daemon.settings import data_home, load_settings

    record = logs_record(data_home(load_settings({}).home) / "launched", run_id)
    try:
        recorded = json.loads(record.read_bytes())
        return [LaunchedLog(str(each["label"]), Path(each["log"])) for each in recorded]
    except (OSError, ValueError, TypeError, KeyError):
        return []
