"""`make demo` shows every evaluator that needs no model, and cleans up, however it ends."""

import os
import runpy
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from cbench_server.datasets import RECORDS
from cbench_server.evaluators import EVALUATORS

ROOT = Path(__file__).resolve().parent.parent
MARK = "DEMO_TEST_MARK"


def marked_processes(mark: str) -> list[str]:
    """Return the command lines of living processes that have inherited the mark."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue  # It has ended, or is somebody else's.
    return [line for line in found if line]


def test_the_demo_uses_every_evaluator_that_needs_no_model() -> None:
    demo = runpy.run_path(str(ROOT / "scripts" / "demo.py"))
    records = {record.name: record for record in RECORDS}
    used = {e for name in (*demo["RETRIEVAL"], *demo["TASKS"]) for e in records[name].evaluators}
    without_model = {name for name, kind in EVALUATORS.items() if not hasattr(kind, "asks_model")}
    # A question without an answer is asked in memory runs only.
    assert used == without_model - {"abstention"}


@pytest.mark.skipif(not Path("/proc").exists(), reason="processes are found through /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
def test_an_interrupted_demo_leaves_no_process(number: signal.Signals) -> None:
    mark = str(uuid.uuid4())
    with subprocess.Popen(
        [sys.executable, ROOT / "scripts" / "demo.py"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, MARK: mark},
        start_new_session=True,
    ) as demo:
        assert demo.stderr is not None
        assert demo.stderr.readline().startswith("a daemon listens on ")
        assert any("cbench-server" in line for line in marked_processes(mark))
        if number == signal.SIGINT:
            os.killpg(demo.pid, number)  # A terminal sends it to all in the foreground.
        else:
            demo.send_signal(number)
        demo.stderr.read()
    assert demo.returncode != 0
    assert marked_processes(mark) == []
