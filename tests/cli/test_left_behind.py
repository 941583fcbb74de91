"""What is left of a `cbench` that is killed: nothing that it has started."""

import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from cbench_client import BenchClient
from tests.cli.conftest import CBENCH, SYSTEM
from tests.fixtures import preloaded
from tests.fixtures.waiting import wait_until

_HANGS = "touch started; sleep 1000"
_DEAF = f"trap '' TERM; {_HANGS}"


class Silent:
    """A web server that is asked and answers nothing."""

    def __init__(self, server: socket.socket) -> None:
        self.url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        self._server = server
        self._caller: socket.socket | None = None

    def wait_until_asked(self) -> None:
        """Wait for a request; who only looks whether anybody listens sends none."""
        while self._caller is None or not self._caller.recv(1):
            self._caller, _ = self._server.accept()


@pytest.fixture
def silent() -> Iterator[Silent]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        yield Silent(server)


def shell(text: str) -> str:
    return shlex.join(["sh", "-c", text])


@pytest.mark.parametrize(
    ("way", "number"),
    [
        ("exec", signal.SIGALRM),
        ("exec", signal.SIGKILL),
        ("exec once", signal.SIGKILL),
        ("exec once, attached", signal.SIGKILL),
        ("http", signal.SIGKILL),
        ("launch", signal.SIGKILL),
        ("starting launch", signal.SIGKILL),
    ],
)
def test_a_killed_command_leaves_nothing_running(
    way: str,
    number: signal.Signals,
    tmp_path: Path,
    environment: dict[str, str],
    silent: Silent,
    request: pytest.FixtureRequest,
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    words = {
        "exec": ["--exec", shell(_HANGS)],
        "exec once": ["--exec", shell(_HANGS), "--exec-mode", "once"],
        "exec once, attached": ["--exec", shell(_HANGS), "--exec-mode", "once"],
        "http": ["--http", silent.url],
        "launch": ["--launch", shlex.join([sys.executable, str(SYSTEM), "stuck", str(folder)])],
        "starting launch": ["--launch", shell(_DEAF)],
    }[way]
    if way == "exec once, attached":
        address = request.getfixturevalue("daemon_address")
        words += ["--server", address]
    with ExitStack() as stack:
        process = stack.enter_context(
            preloaded.Popen(
                [str(CBENCH), "run", "--dataset", "mini-qa", "--no-anchors", *words],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=folder,
                env=environment,
            )
        )
        stack.callback(process.kill)
        if way == "http":
            silent.wait_until_asked()
        else:
            wait_until(lambda: (folder / "started").exists() or (folder / "stuck").exists())
        process.send_signal(number)
        process.wait(60)
        wait_until(lambda: not running_in(folder))
    if "attached" in way:
        # The daemon's run waits for the system to come back.
        with BenchClient(address) as client:
            client.cancel(next(iter(client.list())).run_id)


def running_in(folder: Path) -> list[str]:
    """Return the commands of processes that were started in a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            is_there = os.readlink(path / "cwd") == str(folder)
            command = (path / "cmdline").read_text().replace("\0", " ")
        except OSError:
            continue
        if is_there:
            found.append(command)
    return found
