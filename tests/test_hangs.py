"""A test that hangs is ended, and a run cut short gets no second try: tests/fixtures/hangs.py.

That xdist names the test is xdist's own.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.hangs import GRACE

ROOT = Path(__file__).resolve().parent.parent
# What pytest-timeout raises is caught by the first wait, and not raised again for the second.
HANGING = """
import asyncio, contextlib, pytest_asyncio

@pytest_asyncio.fixture
async def stubborn():
    yield
    with contextlib.suppress(BaseException):
        await asyncio.Event().wait()
    while True:
        with contextlib.suppress(BaseException):
            await asyncio.Event().wait()

async def test_that_hangs_in_its_teardown(stubborn):
    pass
"""


def test_a_test_that_hangs_in_its_teardown_is_ended(tmp_path: Path) -> None:
    (tmp_path / "test_hanging.py").write_text(HANGING)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", tmp_path, tmp_path]
        + ["-p", "tests.fixtures.hangs", "-p", "no:cacheprovider", "-p", "no:xdist"]
        + ["-o", "asyncio_mode=auto", "-o", "timeout=0.2"],
        cwd=ROOT,
        env={**os.environ, GRACE: "0.3"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 1, done.stdout
    assert "Timeout (0:00:00.500000)!" in done.stderr, "with the stacks of its threads"
    assert "passed" not in done.stdout, "the process is gone before pytest sums up"


INTERRUPTED = """
def test_that_fails():
    assert False

def test_that_is_interrupted():
    raise KeyboardInterrupt

def test_that_never_runs():
    assert False
"""


def test_of_a_run_that_was_interrupted_nothing_is_left_to_be_run_once_more(tmp_path: Path) -> None:
    (tmp_path / "test_interrupted.py").write_text(INTERRUPTED)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", tmp_path, tmp_path]
        + ["-p", "tests.fixtures.hangs", "-p", "no:xdist"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == pytest.ExitCode.INTERRUPTED, done.stdout
    failed = tmp_path / ".pytest_cache" / "v" / "cache" / "lastfailed"
    assert json.loads(failed.read_text()) == {}, "one of them would pass for all of them"
