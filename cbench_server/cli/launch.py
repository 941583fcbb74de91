"""Systems launched for one run: they say `cbench|1|tcp|HOST:PORT`, and are restarted if they die.

Each leads its own process group: it can be stopped together with everything it
has started, and Ctrl-C reaches only this process.
"""

import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from cbench_server.cli.exits import CommandFailed, UsageError
from cbench_server.cli.launched_output import Output, Voice
from cbench_server.cli.signals import before_leaving
from cbench_server.cluster import groups, relay
from cbench_server.cluster.handshake import PROTOCOL_MAJOR, OtherProtocol, listening_at

PATIENCE_SECONDS = 120.0
MAX_RESTARTS = 5
STOP_SECONDS = 5.0
_NOTE_EVERY_S = 10.0
_FIRST_PAUSE_S = 0.5
BRIDGE = ("-m", "cbench_server.bridges")

_running: list["subprocess.Popen[bytes]"] = []


def kill_all() -> None:
    """Kill everything that is still running, at once."""
    for process in _running:
        _signal_group(process, signal.SIGKILL)


class Place(Protocol):
    """Somewhere else to run programs."""

    def stand_in(self, words: list[str], folder: Path, environment: Mapping[str, str]) -> list[str]:
        """Return the words of a program here that stands in for one there."""
        ...

    def record(self) -> dict[str, Any]:
        """Return what finds this place again."""
        ...


class Launched:
    """One system process and its successors, which a run finds at one address.

    Args:
        folder: Where the command is run.
        patience: Seconds to wait for it to say where it listens.
        target: Where a run expects it already; empty for a new run, which is
            told the address that the first process gives.
        died: Called, in a thread, when it has died.
        environment: What it is told besides what this process knows.
        place: Where it runs, if that is not this machine.
    """

    def __init__(
        self,
        command: str,
        folder: Path,
        output: Output,
        voice: Voice,
        patience: float = PATIENCE_SECONDS,
        target: str = "",
        died: Callable[[], None] = lambda: None,
        environment: Mapping[str, str] | None = None,
        place: "Place | None" = None,
    ) -> None:
        self.command = command
        self.place = place
        self.folder = folder
        self.output = output
        self.target = target
        self.good_rows = 0
        """Rows that the run has of it and that did not fail, kept up to date by who follows it."""
        self.death = ""
        """How it ended the last time, and its last words."""
        self.is_given_up = False
        """Whether it has died too often to be started again."""
        self._voice = voice
        self._patience = patience
        self._died = died
        self._stopping = threading.Event()
        self._relay: subprocess.Popen[bytes] | None = None
        self._environment = {**(environment or {}), "CBENCH_HANDSHAKE": "1"}
        self._life = self._new_life()
        self._supervisor = threading.Thread(
            target=self._supervise, name="cbench-launch", daemon=True
        )

    def wait(self) -> str:
        """Wait until it listens, watch over it from then on, and return where the run finds it.

        One that is killed before that is started again as later; one that ends by itself is
        not, since whatever is wrong with it will be wrong again.
        """
        deaths = 0
        while True:
            try:
                self._open(self._life)
            except CommandFailed:
                deaths += 1
                if not self._life.was_killed or deaths > MAX_RESTARTS:
                    raise
            else:
                self._supervisor.start()
                return self.target
            told = f"{self.output.label} {self._life.end()} before it said where it listens"
            if self._pauses(told, deaths):
                raise CommandFailed(f"{told}.")
            self.output.forget_last_words()
            self._life = self._new_life()
            if self._stopping.is_set():
                self._life.kill()
                raise CommandFailed(f"{told}.")

    def _new_life(self) -> "_Life":
        return _Life(self.command, self.folder, self.output, self._environment, self.place)

    def begin_to_stop(self) -> None:
        """Ask it to end."""
        self._stopping.set()
        self.output.is_shown = False
        self._life.ask()

    def stop(self) -> None:
        """Stop it, with everything it has started."""
        self.begin_to_stop()
        self._life.stop()
        if self._supervisor.ident is not None:
            self._supervisor.join()
        self._close_relay()
        self.output.close()

    def _open(self, life: "_Life") -> None:
        """Wait for a process to say where it listens, and see that the run finds it."""
        address = self._address(life)
        if self.target in ("", address):
            self.target = address
            return
        # In a session of its own, so that Ctrl-C leaves it alone; it ends when its stdin does.
        started = subprocess.Popen(
            [sys.executable, "-I", "-S", relay.__file__, self.target, address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._relay = started
        stdout: Any = started.stdout
        if stdout.readline() != relay.READY:
            _, why = started.communicate()
            raise CommandFailed(
                f"the run knows {self.output.label} at {self.target}, where it cannot listen "
                f"again: {why.decode(errors='replace').strip()}. Wait until that address is free."
            )

    def _close_relay(self) -> None:
        if self._relay is not None:
            self._relay.kill()
            self._relay.communicate()
            self._relay = None

    def _address(self, life: "_Life") -> str:
        begun, spent = time.monotonic(), 0.0
        while not life.announced.wait(min(_NOTE_EVERY_S, self._patience - spent)):
            spent = time.monotonic() - begun
            if spent >= self._patience:
                raise CommandFailed(
                    f"`{self.command}` did not say where it listens within {self._patience:g}s: "
                    f"it must print cbench|{PROTOCOL_MAJOR}|tcp|HOST:PORT. If it needs longer to "
                    f"start, pass --launch-timeout.{self.output.last_words}"
                )
            self._voice.chat(
                f"{self.output.label} has not said yet where it listens; waited {spent:.0f}s of "
                f"--launch-timeout {self._patience:g}s"
            )
        if life.address:
            return life.address
        if life.other_protocol:
            raise CommandFailed(
                f"`{self.command}` speaks protocol {life.other_protocol}, this cbench speaks "
                f"{PROTOCOL_MAJOR}. Upgrade the older of the two."
            )
        if is_bridge(self.command):
            life.end()
            raise CommandFailed(f"{self.output.label} did not start.{self.output.last_words}")
        raise CommandFailed(
            f"`{self.command}` {life.end()} before it said where it listens."
            f"{self.output.last_words}"
        )

    @property
    def has_ended(self) -> bool:
        """Whether its process is gone, and not started again yet."""
        return self._life.has_ended

    def _supervise(self) -> None:
        """Start the system again whenever it has died, unless it keeps dying."""
        in_a_row, rows_then = 0, 0
        while True:
            how = self._life.end()
            if self._stopping.is_set():
                return
            self._close_relay()
            in_a_row = in_a_row + 1 if self.good_rows == rows_then else 1
            rows_then = self.good_rows
            told, words = f"{self.output.label} {how}", self.output.last_words
            printed = f" All it printed is in {self.output.log}.{words}"
            if in_a_row > MAX_RESTARTS:
                self.is_given_up = True
                self._tell_death(
                    f"{told}, for the {in_a_row}th time without an answer between, and is not "
                    f"started again.{printed}"
                )
                return
            self._tell_death(f"{told}.{printed}")
            if self._pauses(told, in_a_row):
                return
            self._restart()

    def _pauses(self, told: str, deaths: int) -> bool:
        """Say how it died, and wait before it is started again; True if it is to be stopped."""
        pause = _FIRST_PAUSE_S * 2 ** (deaths - 1)
        self._voice.say(f"{told}; it is started again in {pause:g}s.{self.output.last_words}")
        return self._stopping.wait(pause)

    def _tell_death(self, death: str) -> None:
        self.death = death
        self._died()

    def _restart(self) -> None:
        self.output.forget_last_words()
        try:
            life = self._new_life()
        except UsageError as error:
            self._voice.say(str(error))
            return
        self._life = life
        if self._stopping.is_set():
            life.kill()
            return
        try:
            self._open(life)
        except CommandFailed as error:
            # It has ended, or is ended here; either way that is another death.
            if life.address:
                self._voice.say(str(error))
            life.kill()
        else:
            self._voice.say(f"{self.output.label} is back.")


class _Life:
    """One process, from its start to its end."""

    def __init__(
        self,
        command: str,
        folder: Path,
        output: Output,
        environment: Mapping[str, str],
        place: "Place | None",
    ) -> None:
        words = command_words(command)
        if place is not None:
            words = place.stand_in(words, folder, environment)
        groups.prepare()
        try:
            self._process = subprocess.Popen(
                words,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                env={**os.environ, **environment},
            )
        except OSError as error:
            raise UsageError(f"cannot launch `{command}`: {error.strerror}: {words[0]}") from error
        if not _running:
            before_leaving(kill_all)
        _running.append(self._process)
        groups.end_with_us(self._process.pid)
        self.address = ""
        self.other_protocol = ""
        self.announced = threading.Event()
        """Set when it is known where it listens, or that it never will be."""
        self._readers = [
            output.read(self._process.stderr),
            output.read(self._process.stdout, self._take),
        ]
        threading.Thread(target=self._wait, name="cbench-launch", daemon=True).start()

    def _take(self, line: str) -> bool:
        """Look for the line that says where it listens; others are shown."""
        if self.announced.is_set():
            return False
        try:
            address = listening_at(line)
        except OtherProtocol as error:
            self.other_protocol = str(error)
        else:
            if address is None:
                return False
            self.address = address
        self.announced.set()
        return True

    def _wait(self) -> None:
        self._process.wait()
        self._hear_out()
        self.announced.set()

    def _hear_out(self, patience: float = 0.3) -> None:
        # The last output of a process that has just ended may still be in the pipe, and what
        # it has started may hold the pipe open.
        for reader in self._readers:
            reader.join(patience)

    def end(self) -> str:
        """Wait until it has ended, with all it started, and say how."""
        code = self._process.wait()
        # What it has started holds its pipes no longer, but for what left its group.
        self.kill()
        self._hear_out(2.0)
        groups.has_ended(self._process.pid)
        if code < 0:
            return f"was killed by signal {-code} ({signal.Signals(-code).name})"
        return f"ended with exit code {code}"

    @property
    def was_killed(self) -> bool:
        """Whether somebody ended it; shells and stand-ins have a code of their own for that."""
        signals = (signal.SIGKILL, signal.SIGTERM)
        return self._process.poll() in [code for each in signals for code in (-each, 128 + each)]

    @property
    def has_ended(self) -> bool:
        """Whether it is over."""
        return self._process.poll() is not None

    def ask(self) -> None:
        """Ask it to end."""
        _signal_group(self._process, signal.SIGTERM)

    def kill(self) -> None:
        """End it at once."""
        _signal_group(self._process, signal.SIGKILL)

    def stop(self) -> None:
        """Wait for it to end as asked, and end it if it does not."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_SECONDS)
        # Also after a clean exit: its children may still run in its group.
        self.kill()
        self._process.wait()
        groups.has_ended(self._process.pid)
        with suppress(ValueError):
            _running.remove(self._process)


def command_words(command: str) -> list[str]:
    """Split a command as a shell does."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"cannot launch `{command}`: {error}.") from error
    if not words:
        raise UsageError('--launch is empty; give it a command such as "python my_system.py".')
    return words


def is_bridge(command: str) -> bool:
    """Whether it is our own program that stands for an `--exec` or `--http`."""
    return tuple(shlex.split(command)[1:3]) == BRIDGE


def label_of(command: str) -> str:
    """Name a command by its program: the last word that is a file, else the first."""
    words = command_words(command)
    files = [word for word in words if Path(word).is_file()]
    return Path(files[-1] if files else words[0]).stem


def _signal_group(process: "subprocess.Popen[bytes]", number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
