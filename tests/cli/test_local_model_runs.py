"""Runs with the small real model: what is on record, and what `resume` and `try` do with it."""

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cbench_server.models.local_files import WEIGHTS
from tests.cli.conftest import CBENCH, Cbench
from tests.fixtures import preloaded
from tests.fixtures.local_model import require_model
from tests.fixtures.waiting import wait_until

PROGRAM = """\
import json, pathlib, sys, time
held, free = pathlib.Path("held"), pathlib.Path("free")
for place, line in enumerate(sys.stdin):
    if place == 1 and not free.exists():
        held.touch()
        while not free.exists():
            time.sleep(0.02)
    asked = json.loads(line)
    print(json.dumps({"id": asked["id"], "example": asked["example"]}), flush=True)
"""
FLAGS = ("--dataset", "mini-qa", "-n", "2", "--reader", "local", "--max-tokens", "4")


@pytest.fixture(autouse=True)
def _model() -> None:
    require_model()


def test_a_stopped_run_is_resumed_with_its_model_served_again(
    cbench: Cbench, environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "held.py").write_text(PROGRAM)
    program = shlex.join([sys.executable, "held.py"])
    command = ["run", "--exec", program, "--name", "held", *FLAGS, "--no-anchors"]
    with preloaded.Popen(
        [str(CBENCH), *command, "--exec-concurrency", "1"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        wait_until((tmp_path / "held").exists)
        os.kill(process.pid, signal.SIGINT)
        _, told = process.communicate()
    assert process.returncode == 130, told
    (tmp_path / "free").touch()
    done = cbench("resume", "last", "--output", "json")
    assert done.returncode == 0, done.stderr
    run = json.loads(done.stdout)
    assert (run["state"], run["completed_rows"], run["failed_rows"]) == ("succeeded", 2, 0)
    (model,) = run["config"]["local_models"]
    assert model["sha256"] == WEIGHTS.sha256
    assert {name: model[name] for name in ("threads", "slots", "seed", "context")} == {
        "threads": 1,
        "slots": 1,
        "seed": 1,
        "context": 4096,
    }
    assert model["prompt_cache"] is False


def test_one_example_is_tried_with_the_model_as_its_reader(cbench: Cbench) -> None:
    done = cbench("try", "--builtin", "identity", *FLAGS[:2], *FLAGS[4:], "--output", "json")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    assert row["processed"]["response"]
    assert not row.get("failure")
