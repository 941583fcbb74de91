"""A long run is summarised by a program of its own, to the same numbers."""

import asyncio
from pathlib import Path

import pytest

from cbench_client import BenchClient
from cbench_server.cli.stored_runs import run_of
from cbench_server.daemon import summary_program
from cbench_server.daemon.summary_program import summarize_apart
from cbench_server.errors import StoreError

from .following import run
from .processes import DaemonProcess, examples, start_system


def test_another_program_gives_the_same_summary(daemon: DaemonProcess, client: BenchClient) -> None:
    with start_system("echo") as system:
        spec = {"systems": [{"target": system.address}], "asked_again": 0}
        seen = run(client, spec, examples(40))
    finished = run_of(seen.finished)
    apart = asyncio.run(summarize_apart(daemon.home, "", [], finished.run_id))
    assert apart.summary == finished.summary
    assert apart.summary["echo"]["num_scored"] == 40
    assert apart.headlines == {"echo": ("f1",)}


def test_a_program_that_hangs_is_ended_and_said_to_have_taken_too_long(
    daemon: DaemonProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summary_program, "_TIMEOUT_S", 0.0)
    with pytest.raises(StoreError, match="not be summarised within 0 s.*resume it"):
        asyncio.run(summarize_apart(daemon.home, "", [], "20200101-000000-000000000"))
    # It is given time by its rows, of which a long run has many.
    with pytest.raises(StoreError, match="no run"):
        asyncio.run(summarize_apart(daemon.home, "", [], "20200101-000000-000000000", 30_000))


def test_what_the_program_complains_of_is_passed_on(daemon: DaemonProcess) -> None:
    with pytest.raises(StoreError, match="could not be summarised: .*no run"):
        asyncio.run(summarize_apart(daemon.home, "", [], "20200101-000000-000000000"))


def test_what_others_print_is_no_part_of_the_summary(
    daemon: DaemonProcess,
    client: BenchClient,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "talks.py").write_text("print('hello')\n")
    monkeypatch.chdir(tmp_path)
    seen = run(client, {"systems": [{"builtin": "identity"}]}, examples(4))
    apart = asyncio.run(summarize_apart(daemon.home, "", ["talks"], seen.finished.run_id))
    assert apart.summary == run_of(seen.finished).summary


def test_a_program_that_is_killed_is_said_to_have_been(
    daemon: DaemonProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dies.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError, match="was ended by SIGKILL.*resume it"):
        asyncio.run(summarize_apart(daemon.home, "", ["dies"], "20200101-000000-000000000"))
