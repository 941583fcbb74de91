"""What is launched and served for a run, and the record that `cbench resume` starts it again by.

The record is a file of this user beside the store. It is never taken from a run: what a daemon
keeps was written by its clients, and must not decide which commands are run here.
"""

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from cbench_client.errors import Refused
from cbench_server.cli.bridges import environment_of
from cbench_server.cli.exits import CommandFailed
from cbench_server.cli.launch import PATIENCE_SECONDS, Launched, label_of
from cbench_server.cli.launched_output import Output, Voice
from cbench_server.cli.local_models import record_of, serve_again
from cbench_server.durable.files import put_in_place
from cbench_server.storage.leftovers import new_part

if TYPE_CHECKING:
    from cbench_server.cli.cluster_launch import ClusterPlace
    from cbench_server.models.local import LocalModel

_KEPT_DAYS = 30
# How long to wait for the end of a system that cannot be reached, and for what it said last.
_END_S = 2.0
_LAST_WORDS_S = 30.0

Event = TypeVar("Event")


class Launches:
    """What was launched for one run, in the order of the command line."""

    def __init__(self, voice: Voice, patience: float | None, token: str = "") -> None:
        self.voice = voice
        self._token = token
        self._patience = patience or PATIENCE_SECONDS
        self._launched: list[Launched] = []
        self._places: list[ClusterPlace] = []
        self.models: list[LocalModel] = []
        """Local models that are served for the run, by this command."""
        self._served_again: list[LocalModel] = []
        self._tell: Callable[[str], None] | None = None
        self._telling = threading.Lock()

    def start(
        self,
        command: str,
        name: str = "",
        folder: Path | None = None,
        place: "ClusterPlace | None" = None,
    ) -> None:
        """Start a new system; `name` is what to call it, `place` where it runs if not here."""
        label = name or label_of(command)
        number = f"-{len(self._launched)}" if self._launched else ""
        log = self._path(f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{label}{number}.log")
        self._add(command, folder or Path.cwd(), label, log, place=place)

    def start_again(self, run_id: str) -> bool:
        """Start what was launched for a run; False if that was nothing."""
        try:
            recorded = json.loads(self._record(run_id).read_bytes())
        except FileNotFoundError:
            return False
        except ValueError as error:
            raise CommandFailed(f"{self._record(run_id)} is damaged: {error}.") from error
        for each in recorded:
            if "gguf" in each:
                self._serve_again(each)
                continue
            self._add(
                each["command"],
                Path(each["folder"]),
                each["label"],
                Path(each["log"]),
                each["target"],
                self._place_again(each.get("place")),
            )
        return True

    def _place_again(self, record: dict[str, Any] | None) -> "ClusterPlace | None":
        if record is None:
            return None
        for place in self._places:
            if place.record() == record:
                return place
        from cbench_server.cli.cluster_launch import ClusterPlace

        return ClusterPlace(record["ray_address"], record["resources"])

    def _serve_again(self, record: dict[str, Any]) -> None:
        model = serve_again(record)
        self._served_again.append(model)
        self.models.append(model)

    def _add(
        self,
        command: str,
        folder: Path,
        label: str,
        log: Path,
        target: str = "",
        place: "ClusterPlace | None" = None,
    ) -> None:
        self._make_folder()
        if place is not None and place not in self._places:
            self._places.append(place)
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
                place,
            )
        except BaseException:
            output.close()
            raise
        self._launched.append(made)

    def wait(self) -> list[Launched]:
        """Wait until all of them listen.

        One that is killed meanwhile is started again though another takes its time.
        """
        pool = ThreadPoolExecutor(max(1, len(self._launched)), "cbench-launching")
        try:
            for done in as_completed([pool.submit(each.wait) for each in self._launched]):
                done.result()
        finally:
            # Those that still wait end when they are stopped.
            pool.shutdown(wait=False)
        return self._launched

    def remember(self, run_id: str) -> None:
        """Write down what is launched for a run, so that it can be resumed."""
        if not (self._launched or self.models):
            return
        self._make_folder()
        record: list[dict[str, Any]] = [
            {
                "command": each.command,
                "folder": str(each.folder),
                "label": each.output.label,
                "log": str(each.output.log),
                "target": each.target,
                "place": each.place.record() if each.place else None,
            }
            for each in self._launched
        ]
        record += [record_of(model) for model in self.models]
        handle, part = new_part(self._folder, suffix=".part")
        with open(handle, "w") as file:
            json.dump(record, file)
            put_in_place("launched", file, part, self._record(run_id))

    def forget(self, run_id: str) -> None:
        """Drop the record of a run that has nothing left to resume."""
        if self._launched or self.models:
            self._record(run_id).unlink(missing_ok=True)

    def count(self, good_rows: Mapping[str, int]) -> None:
        """Take note how many rows of the systems at each address have not failed."""
        for each in self._launched:
            each.good_rows = good_rows.get(each.target, 0)

    def given_up(self) -> dict[str, str]:
        """Return the addresses of what is not started again, and how each ended."""
        return {each.target: each.death for each in self._launched if each.is_given_up}

    def without_deaths(self, reason: str) -> str:
        """Leave out of a reason how launched systems ended, which the person was told before."""
        for each in self._launched:
            reason = reason.replace(f" {each.death}", "") if each.death else reason
        return reason

    def explain_to(self, tell: Callable[[str], None] | None) -> None:
        """Have the run told, in a thread, how systems have died."""
        with self._telling:
            self._tell = tell

    def blamed(self, events: "Iterator[Event]") -> "Iterator[Event]":
        """Pass events on; where a system cannot be reached because it died here, say that."""
        try:
            yield from events
        except Refused as error:
            if error.reason != "SYSTEM_UNREACHABLE" or not (deaths := self._deaths()):
                raise
            raise CommandFailed(deaths) from error

    def _deaths(self) -> str:
        """Tell how systems have died; one that is just dying is given time for its last words."""
        started = time.monotonic()
        while True:
            deaths = " ".join(each.death for each in self._launched if each.death)
            is_dying = any(each.has_ended for each in self._launched)
            patience = _LAST_WORDS_S if is_dying else _END_S
            if deaths or not self._launched or time.monotonic() - started >= patience:
                return deaths
            time.sleep(0.05)

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
        for place in self._places:
            place.close()
        for model in self._served_again:
            model.close()

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
