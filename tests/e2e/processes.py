"""Real processes for end-to-end tests: a daemon, and systems that behave or do not."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from cbench_client import BenchClient
from tests.fixtures import preloaded
from tests.fixtures.waiting import wait_until as wait_until

SYSTEMS = Path(__file__).with_name("systems.py")


class Process:
    """A program that announces its address by the one-line handshake."""

    def __init__(self, command: Sequence[str], env: dict[str, str] | None = None) -> None:
        self.errors: list[str] = []
        self.process = preloaded.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(env or {})},
        )
        assert self.process.stdout is not None
        self._drain = threading.Thread(target=self._read_errors, daemon=True)
        self._drain.start()
        line = self.process.stdout.readline()
        if not line.startswith("cbench|1|tcp|"):
            self.process.wait(10)
            self._drain.join(5)
            raise AssertionError(f"{command} said {line!r}; stderr: {''.join(self.errors)}")
        self.address = line.strip().rpartition("|")[2]

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        self.errors.extend(self.process.stderr)

    @property
    def pid(self) -> int:
        return self.process.pid

    def kill(self) -> None:
        """End it as a crash would."""
        self.process.kill()
        self.process.wait()

    def terminate(self, timeout: float = 40) -> int:
        """Ask it to end, and return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout)
        self._drain.join(5)
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.kill()


class DaemonProcess(Process):
    """`cbench-server`; restarted at the same place where it is given a held port."""

    def __init__(
        self,
        home: Path,
        *flags: str,
        port: int = 0,
        env: dict[str, str] | None = None,
        under: Sequence[str] = (),
    ) -> None:
        """`under` is a command that runs another one, such as `setpriv`."""
        self.home = home
        program = "import sys; from cbench_server.daemon import main; sys.exit(main())"
        command = [*under, sys.executable, "-c", program, "--address", f"127.0.0.1:{port}"]
        environment = {"CBENCH_HANDSHAKE": "1", **(env or {})}
        super().__init__([*command, "--home", str(home), *flags], environment)


def start_system(behaviour: str, *arguments: str, port: int = 0) -> Process:
    """Start one of the systems of systems.py."""
    return Process([sys.executable, str(SYSTEMS), behaviour, str(port), *arguments])


def rows_stored(daemon: DaemonProcess) -> int:
    """Count the rows of the only run, by a client that knows nothing of an earlier daemon there."""
    with BenchClient(daemon.address) as client:
        (run,) = client.list()
    return int(run.progress.completed_rows)


def start_held(gate: Path, answers: int = 20, *, log: str = "", port: int = 0) -> Process:
    """Start an echo that answers so many calls and keeps the others until the gate is touched.

    So a run is under way for as long as a test wants, however slow the machine or the test is.
    """
    return start_system("echo", log, "0", str(answers), str(gate), port=port)


def examples(count: int, context: str = "The capital of France is Paris.") -> list[dict[str, Any]]:
    """Make examples that an echo of the question answers."""
    return [
        {"id": f"e{number}", "context": context, "question": f"Paris {number}", "answer": "Paris"}
        for number in range(count)
    ]
