"""`cbench logs`: the events of a run, and what was printed by what it launched."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

from tests.cli.conftest import CBENCH, Cbench, complaint
from tests.fixtures import preloaded
from tests.fixtures.waiting import wait_until

SYSTEM = """
import pathlib, sys, time
from cbench_client import serve

class Talker:
    name = "talker"
    version = "1"
    def process(self, example):
        print("reading", example["id"], flush=True)
        while len(sys.argv) > 1 and not pathlib.Path(sys.argv[1]).exists():
            time.sleep(0.01)
        if example["id"].endswith("3"):
            raise ValueError("no three")
        return {**example, "response": "x"}

serve(Talker())
"""
RUN = ("run", "--dataset", "mini-qa", "-n", "4", "--quiet")


def launch(tmp_path: Path, *arguments: str) -> str:
    program = tmp_path / "talker.py"
    program.write_text(SYSTEM)
    return shlex.join([sys.executable, str(program), *arguments])


def test_the_events_of_a_run_and_what_it_launched_are_shown(cbench: Cbench, tmp_path: Path) -> None:
    assert cbench(*RUN, "--launch", launch(tmp_path)).returncode == 0
    shown = cbench("logs", "last")
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert "accepted: talker on mini-qa" in lines[0]
    assert [line for line in lines if "row failed" in line and "no three" in line]
    assert [line for line in lines if "succeeded: 4 rows, 1 failed" in line]
    printed = [line for line in lines if line.startswith("talker: reading mini-qa-")]
    assert len(printed) == 4


def test_each_line_is_an_object_with_json(cbench: Cbench, tmp_path: Path) -> None:
    assert cbench(*RUN, "--launch", launch(tmp_path)).returncode == 0
    entries = [json.loads(line) for line in cbench("logs", "last", "--json").stdout.splitlines()]
    assert len({entry["run_id"] for entry in entries}) == 1
    events = [entry["event"] for entry in entries if entry["event"] != "printed"]
    assert events == ["accepted", "running", "row failed", "succeeded"]
    [failed] = [entry for entry in entries if entry["event"] == "row failed"]
    assert (failed["system"], failed["example"], failed["reason"]) == (
        "talker",
        "mini-qa-003",
        "EXCEPTION",
    )


def test_a_run_at_work_is_shown_as_far_as_it_is_and_followed_to_its_end(
    cbench: Cbench, tmp_path: Path, environment: dict[str, str]
) -> None:
    go = tmp_path / "go"
    running = preloaded.Popen(
        [str(CBENCH), *RUN, "--launch", launch(tmp_path, str(go))],
        stdout=subprocess.DEVNULL,
        env=environment,
        cwd=tmp_path,
    )
    following = None
    try:
        wait_until(lambda: "talker: reading" in cbench("logs", "last").stdout)
        so_far = cbench("logs", "last").stdout
        assert "running" in so_far
        assert "succeeded" not in so_far
        following = preloaded.Popen(
            [str(CBENCH), "logs", "last", "--follow"],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=tmp_path,
        )
        assert following.stdout is not None
        seen = [following.stdout.readline()]
        go.touch()
        seen += following.stdout.readlines()
        assert following.wait(60) == 0
        assert running.wait(60) == 0
    finally:
        go.touch()
        for each in (running, following):
            if each is not None and each.poll() is None:
                each.kill()
                each.wait()
    assert "accepted" in seen[0]
    assert [line for line in seen if "succeeded: 4 rows" in line]
    assert len([line for line in seen if line.startswith("talker: reading")]) == 4


def test_a_run_that_is_not_there_is_named(cbench: Cbench) -> None:
    assert "nosuch" in complaint(cbench("logs", "nosuch"))
