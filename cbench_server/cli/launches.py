"""The launched systems of a run, and the record by which `cbench resume` launches them again.

The record is a file of this user beside the store. It is never taken from a run: what a daemon
keeps was written by its clients, and must not decide which commands are run here.
"""

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path

from cbench_server.cli.bridges import environment_of
from cbench_server.cli.exits import CommandFailed
from cbench_server.cli.launch import PATIENCE_SECONDS, Launched, label_of
from cbench_server.cli.launched_output import Output, Voice

_KEPT_DAYS = 30


class Launches:
    """What was launched for one run, in the order of the command line."""

    def __init__(self, voice: Voice, patience: float | None, token: str = "") -> None:
        self.voice = voice
        self._token = token
        self._patience = patience or PATIENCE_SECONDS
        self._launched: list[Launched] = []
        self._tell: Callable[[str], None] | None = None
        self._telling = threading.Lock()

    def start(self, command: str, name: str = "", folder: Path | None = None) -> None:
        """Start a new system; `name` is what to call it."""
        label = name or label_of(command)
        number = f"-{len(self._launched)}" if self._launched else ""
        log = self._path(f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{label}{number}.log")
        self._add(command, folder or Path.cwd(), label, log)

    def start_again(self, run_id: str) -> bool:
        """Start what was launched for a run; False if that was nothing."""
        try:
            recorded = json.loads(self._record(run_id).read_bytes())
        except FileNotFoundError:
            return False
        except ValueError as error:
            raise CommandFailed(f"{self._record(run_id)} is damaged: {error}.") from error
        for each in recorded:
            self._add(
                each["command"],
                Path(each["folder"]),
                each["label"],
                Path(each["log"]),
                each["target"],
            )
        return True

    def _add(self, command: str, folder: Path, label: str, log: Path, target: str = "") -> None:
        self._make_folder()
        output = Output(label, log, self.voice)
        try:
            made = Launched(
                command,
                folder,
                output,
                self.voice,
                self._patience,
                target,
                self.explain,
                environment_of(command, self._token),
            )
        except BaseException:
            output.close()
            raise
        self._launched.append(made)

    def wait(self) -> list[Launched]:
        """Wait until all of them listen."""
        for each in self._launched:
            each.wait()
        return self._launched

    def remember(self, run_id: str) -> None:
        """Write down what is launched for a run, so that it can be resumed."""
        if not self._launched:
            return
        record = [
            {
                "command": each.command,
                "folder": str(each.folder),
                "label": each.output.label,
                "log": str(each.output.log),
                "target": each.target,
            }
            for each in self._launched
        ]
        descriptor = os.open(
            self._record(run_id), os.O_CREAT | os.O_WRONLY | os.O_TRUNC, mode=0o600
        )
        with open(descriptor, "w") as file:
            json.dump(record, file)

    def forget(self, run_id: str) -> None:
        """Drop the record of a run that has nothing left to resume."""
        if self._launched:
            self._record(run_id).unlink(missing_ok=True)

    def count(self, good_rows: Mapping[str, int]) -> None:
        """Take note how many rows of the systems at each address have not failed."""
        for each in self._launched:
            each.good_rows = good_rows.get(each.target, 0)

    def explain_to(self, tell: Callable[[str], None] | None) -> None:
        """Have the run told, in a thread, how systems have died."""
        with self._telling:
            self._tell = tell

    def explain(self) -> None:
        """Tell the run how systems have died, if any have."""
        with self._telling:
            deaths = " ".join(each.death for each in self._launched if each.death)
            if deaths and self._tell is not None:
                self._tell(deaths)

    def stop(self) -> None:
        """Stop all of them."""
        for each in self._launched:
            each.begin_to_stop()
        for each in self._launched:
            each.stop()

    @cached_property
    def _folder(self) -> Path:
        # Imported here, since most commands launch nothing.
        from cbench_server.daemon.settings import data_home, load_settings

        return data_home(load_settings({}).home) / "launched"

    def _record(self, run_id: str) -> Path:
        return self._path(f"{run_id}.json")

    def _path(self, name: str) -> Path:
        return self._folder / "".join(c if c.isalnum() or c in ".-_" else "_" for c in name)

    def _make_folder(self) -> None:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise CommandFailed(
                f"cannot keep what launched systems print in {self._folder}: {error.strerror}. "
                "To use another place, set CBENCH_HOME."
            ) from error
        oldest = time.time() - _KEPT_DAYS * 86400
        for path in self._folder.iterdir():
            with suppress(OSError):
                if path.stat().st_mtime < oldest:
                    path.unlink()


@contextmanager
def launching(*, quiet: bool, patience: float | None, token: str = "") -> Iterator[Launches]:
    """Launch systems, and stop them all at the end; bridges attach with `token`."""
    launches = Launches(Voice(quiet=quiet), patience, token)
    try:
        yield launches
    finally:
        launches.stop()
