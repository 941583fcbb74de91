"""A test that hangs is ended: tests/fixtures/hangs.py. (That xdist names it is xdist's own.)"""

import os
import subprocess
import sys
from pathlib import Path

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
