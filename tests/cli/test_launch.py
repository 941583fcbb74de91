"""`--launch`: systems started for one run, and what becomes of bad ones."""

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import CBENCH, SYSTEM, Cbench, complaint
from tests.fixtures import preloaded

_RUN = ("run", "--dataset", "mini-qa", "-n", "2")


def _python(code: str) -> str:
    return shlex.join([sys.executable, "-c", code])


def test_a_launched_system_is_used_and_stopped_with_its_children(
    cbench: Cbench, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    program = (
        "import os, subprocess, sys; "
        "child = subprocess.Popen(['sleep', '1000']); "
        f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}'); "
        f"sys.argv = ['system', 'answering']; exec(open({str(SYSTEM)!r}).read())"
    )
    finished = cbench(*_RUN, "--builtin", "identity", "--launch", _python(program))
    assert finished.returncode == 0, finished.stderr
    assert [line.split()[0] for line in finished.stdout.splitlines()[2:4]] == [
        "identity",
        "answering",
    ]
    for pid in map(int, pids.read_text().split()):
        assert not _is_running(pid)


def test_ending_cbench_ends_what_it_launched(tmp_path: Path, environment: dict[str, str]) -> None:
    system = shlex.join([sys.executable, str(SYSTEM), "stuck", str(tmp_path)])
    process = preloaded.Popen(
        [str(CBENCH), *_RUN[:3], "--launch", system], stderr=subprocess.PIPE, env=environment
    )
    with process:
        deadline = time.monotonic() + 60
        while not (tmp_path / "stuck").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.terminate()
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert b"Traceback" not in stderr
    assert not _is_running(int((tmp_path / "stuck").read_text()))


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (
            "import sys; print('bad luck', file=sys.stderr); sys.exit(3)",
            "ended with exit code 3 before it said where it listens. "
            "The end of its stderr: bad luck",
        ),
        (
            "import time; print('hello', flush=True); time.sleep(60)",
            'said "hello" on its stdout instead of cbench|1|tcp|HOST:PORT',
        ),
        (
            "import time; print('cbench|2|tcp|x:1', flush=True); time.sleep(60)",
            "speaks protocol 2, this cbench speaks 1",
        ),
    ],
    ids=["ends", "chats", "other-protocol"],
)
def test_a_process_that_is_no_system_is_reported(cbench: Cbench, code: str, expected: str) -> None:
    finished = cbench(*_RUN, "--launch", _python(code))
    assert finished.returncode == 1
    assert expected in complaint(finished)


def test_a_command_that_does_not_exist_is_reported(cbench: Cbench) -> None:
    finished = cbench(*_RUN, "--launch", "no-such-program --flag")
    assert finished.returncode == 2
    assert "cannot launch `no-such-program --flag`" in complaint(finished)


def test_a_distant_daemon_cannot_use_what_is_launched_here(cbench: Cbench) -> None:
    finished = cbench(*_RUN, "--launch", "true", "--server", "daemon.example:50051")
    assert finished.returncode == 2
    assert "cannot reach it" in complaint(finished)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # An orphan that has ended stays until somebody asks for it.
    return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
