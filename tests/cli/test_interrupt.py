"""Ctrl-C keeps what there is, says how to go on, and resuming does."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import CBENCH, SYSTEM, Cbench, Serve, strict
from tests.fixtures import preloaded
from tests.fixtures.ports import held_port


def _wait_until_stuck(process: "subprocess.Popen[str]", folder: Path) -> None:
    deadline = time.monotonic() + 60
    while not (folder / "stuck").exists():
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.02)


def _interrupt_when_stuck(
    words: list[str], folder: Path, environment: dict[str, str], times: int = 1
) -> tuple[int, str]:
    process = preloaded.Popen(
        [str(CBENCH), "run", *words, "--dataset", "mini-qa"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        _wait_until_stuck(process, folder)
        for _ in range(times):
            process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    finally:
        process.kill()
    assert stdout == ""
    return process.returncode, stderr


def test_an_interrupted_run_is_kept_and_resumed_to_its_end(
    cbench: Cbench, serve: Serve, tmp_path: Path, environment: dict[str, str]
) -> None:
    target = serve("stuck", str(tmp_path))
    code, stderr = _interrupt_when_stuck(["--system", target], tmp_path, environment)
    assert code == 130
    told = re.search(r"^kept (\d+) rows; resume with: cbench resume (\S+)$", stderr, re.MULTILINE)
    assert told, stderr
    assert "Traceback" not in stderr
    shown = strict(cbench("show", told[2], "--output", "json").stdout)
    assert (shown["state"], shown["completed_rows"]) == ("cancelled", int(told[1]))
    (tmp_path / "released").touch()
    resumed = cbench("resume", "last", "--output", "json")
    assert resumed.returncode == 0, resumed.stderr
    assert strict(resumed.stdout)["completed_rows"] == 48


def test_a_run_on_a_daemon_is_cancelled_there(
    cbench: Cbench, serve: Serve, tmp_path: Path, environment: dict[str, str], daemon_address: str
) -> None:
    words = ["--system", serve("stuck", str(tmp_path)), "--server", daemon_address]
    code, stderr = _interrupt_when_stuck(words, tmp_path, environment)
    assert code == 130
    assert "resume with: cbench resume" in stderr
    [run] = strict(cbench("runs", "--server", daemon_address, "--output", "json").stdout)
    assert run["state"] == "cancelled"
    (tmp_path / "released").touch()
    detached = cbench("resume", "last", "--detach", "--server", daemon_address)
    assert detached.returncode == 0
    watched = cbench("watch", run["run_id"], "--server", daemon_address)
    assert watched.returncode == 0, watched.stderr
    assert "succeeded" in watched.stdout


def test_a_system_that_goes_away_is_waited_for_and_given_up(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """The person sees why nothing moves, and in the end why the run failed."""
    target = f"127.0.0.1:{held_port()}"
    with preloaded.Popen(
        [sys.executable, str(SYSTEM), "stuck", str(tmp_path), target],
        stdout=subprocess.PIPE,
        text=True,
        env={**environment, "CBENCH_HANDSHAKE": "1"},
    ) as system:
        assert system.stdout is not None
        assert system.stdout.readline().strip().rpartition("|")[2] == target
        words = ["--system", target, "--dataset", "mini-qa", "--wait", "1s"]
        with preloaded.Popen(
            [str(CBENCH), "run", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        ) as process:
            _wait_until_stuck(process, tmp_path)
            system.kill()
            stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "waiting: " in stderr
    assert target in stderr
    assert "cbench resume 2" in stdout


@pytest.mark.parametrize("times", [2, 3])
def test_more_interrupts_end_it_at_once(
    serve: Serve, tmp_path: Path, environment: dict[str, str], times: int
) -> None:
    words = ["--system", serve("stuck", str(tmp_path))]
    code, stderr = _interrupt_when_stuck(words, tmp_path, environment, times)
    assert code == 130
    assert "Traceback" not in stderr
    (tmp_path / "released").touch()


_NEVER_RETURNS = """
import time
from pathlib import Path
from cbench_server.registry import register_system

class Stuck:
    name = "never-returns"

    def process(self, example):
        Path("stuck").touch()
        time.sleep(1000)

register_system("never-returns", Stuck)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_command_ends_whatever_it_waits_for(
    tmp_path: Path, environment: dict[str, str], number: signal.Signals
) -> None:
    """Its code runs in a thread of ours, which nothing can stop."""
    (tmp_path / "never_returns.py").write_text(_NEVER_RETURNS)
    words = ["--import", "never_returns", "--builtin", "never-returns", "--dataset", "mini-qa"]
    with preloaded.Popen(
        [str(CBENCH), "run", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environment,
    ) as process:
        _wait_until_stuck(process, tmp_path)
        process.send_signal(number)
        _, stderr = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert "Traceback" not in stderr
