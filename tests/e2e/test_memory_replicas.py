"""Replicas of a memory system: every conversation lives in one, which may be lost or be away."""

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from cbench_client import BenchClient
from tests.fixtures import preloaded
from tests.fixtures.ports import held_port
from tests.fixtures.preloaded import CBENCH

from .following import Followed
from .processes import DaemonProcess, Process, wait_until
from .test_memory_runs import SYSTEMS, calls, conversations, expected_keys, spec_for, start
from .test_replicas import Seen, once


@contextmanager
def replicas(
    behaviour: str, logs: Sequence[Path | str], *arguments: str
) -> Iterator[list[Process]]:
    with ExitStack() as stack:
        yield [stack.enter_context(start(behaviour, log, *arguments)) for log in logs]


def group(processes: list[Process]) -> dict[str, Any]:
    first, *others = [process.address for process in processes]
    return {"target": first, "replicas": others}


def check_whole(seen: Followed, system: str, count: int) -> None:
    assert (seen.state, seen.failures) == ("SUCCEEDED", {})
    assert sorted(seen.keys) == expected_keys(system, count)
    # Asked of another memory than its own, it would not have known.
    assert {row.scores["contains"] for row in seen.rows} == {1.0}


@pytest.mark.parametrize("behaviour", ["notes", "bare"])
def test_each_conversation_lives_in_one_replica(
    client: BenchClient, tmp_path: Path, behaviour: str
) -> None:
    logs = [tmp_path / name for name in ("a", "b", "c")]
    delay = ("0.01",) if behaviour == "notes" else ()
    with replicas(behaviour, logs, *delay) as processes:
        spec = spec_for(client, group(processes), conversations(18, 3))
        seen = Seen()
        for event in client.evaluate(spec, include_rows=True):
            seen.take(event)
        homes: dict[str, set[str]] = {}
        for row in seen.rows:
            homes.setdefault(row.group, set()).add(row.replica)
        addresses = {process.address for process in processes}
    check_whole(seen, behaviour, 54)
    assert [len(each) for each in homes.values()] == [1] * 18
    assert {each for (each,) in homes.values()} == addresses
    assert sum(len(calls(log, "ingest")) for log in logs) == 18


@pytest.mark.parametrize("is_quick", [False, True])
@pytest.mark.parametrize("behaviour", ["notes", "bare"])
def test_the_conversations_of_a_lost_replica_are_put_in_elsewhere(
    client: BenchClient, tmp_path: Path, behaviour: str, *, is_quick: bool
) -> None:
    """One that is quick is back before its loss counts as a death, without its memory."""
    port, log = held_port(), tmp_path / "again"
    delay = ("0.1",) if behaviour == "notes" else ()
    with ExitStack() as stack:
        first = stack.enter_context(start(behaviour, "", *delay))
        second = stack.enter_context(start(behaviour, "", *delay, port=port))
        seen, kill, back = Seen(), once(60, second.kill), []
        spec = spec_for(client, group([first, second]), conversations(60, 5), timed_rows=3)
        for event in client.evaluate(spec, include_rows=True):
            seen.take(event)
            kill(seen)
            is_gone = seen.has_said(second.address, "is away") or is_quick
            if len(seen.rows) >= 60 and is_gone and not back:
                back.append(stack.enter_context(start(behaviour, log, *delay, port=port)))
    check_whole(seen, behaviour, 300)
    assert is_quick or seen.has_said(second.address, "is away")
    assert calls(log, "ingest")


@pytest.mark.parametrize("deadly", ["q4.1", "number 4"])
def test_what_two_replicas_died_of_is_failed_and_spares_the_third(
    client: BenchClient, tmp_path: Path, deadly: str
) -> None:
    logs = [tmp_path / name for name in ("a", "b", "c")]
    with replicas("deadly", logs, deadly) as processes:
        spec = spec_for(client, group(processes), conversations(8, 3), timed_rows=0)
        seen = Seen()
        for event in client.evaluate(spec, include_rows=True):
            seen.take(event)
    assert seen.state == "SUCCEEDED"
    assert sorted(seen.keys) == expected_keys("deadly", 24)
    failed = {"c4_1"} if deadly == "q4.1" else {f"c4_{place}" for place in range(3)}
    assert seen.failures == dict.fromkeys(failed, "UNAVAILABLE")
    assert sum(len(calls(log, "died")) for log in logs) == 2
    others = [row for row in seen.rows if not row.HasField("failure")]
    assert {row.scores["contains"] for row in others} == {1.0}


@pytest.mark.parametrize("behaviour", ["notes", "bare"])
def test_a_resumed_run_frees_what_its_replicas_hold(tmp_path: Path, behaviour: str) -> None:
    port, logs = held_port(), [tmp_path / name for name in ("a", "b", "c")]
    delay = ("0.01",) if behaviour == "notes" else ()
    daemon = DaemonProcess(tmp_path / "home", port=port)
    with replicas(behaviour, logs, *delay) as processes, BenchClient(daemon.address) as client:
        spec = spec_for(client, group(processes), conversations(40, 6))
        events, seen = client.evaluate(spec, include_rows=True), Seen()
        watcher = threading.Thread(target=lambda: [seen.take(event) for event in events])
        watcher.start()
        try:
            for goal in (20, 75, 130):
                wait_until(lambda goal=goal: len(seen.rows) >= goal)
                daemon.kill()
                daemon = DaemonProcess(tmp_path / "home", port=port)
            watcher.join(120)
            assert not watcher.is_alive()
        finally:
            daemon.kill()
    check_whole(seen, behaviour, 240)


def test_a_replica_that_is_away_when_a_run_resumes_is_freed_when_it_is_back(
    tmp_path: Path,
) -> None:
    """One that was cut off, and did not die, still has what it had."""
    port = held_port()
    daemon = DaemonProcess(tmp_path / "home", port=port)
    logs = [tmp_path / name for name in ("a", "b")]
    with replicas("bare", logs) as processes, BenchClient(daemon.address) as client:
        spec = spec_for(client, group(processes), conversations(80, 6))
        run_id = client.start(spec)
        try:
            wait_until(lambda: client.get(run_id).progress.completed_rows >= 40)
            daemon.kill()
            os.kill(processes[1].pid, signal.SIGSTOP)
            daemon = DaemonProcess(tmp_path / "home", port=port)
            before = client.get(run_id).progress.completed_rows
            wait_until(lambda: client.get(run_id).progress.completed_rows >= before + 30, 90)
            os.kill(processes[1].pid, signal.SIGCONT)
            seen = Seen()
            for event in client.watch(run_id, include_rows=True):
                seen.take(event)
        finally:
            os.kill(processes[1].pid, signal.SIGCONT)
            daemon.kill()
    check_whole(seen, "bare", 480)


def test_launched_and_listed_replicas_of_a_memory_system_share_a_run(tmp_path: Path) -> None:
    data = tmp_path / "talks.jsonl"
    data.write_text("".join(f"{json.dumps(each)}\n" for each in conversations(12, 3)))
    flags = ["--dataset", str(data), "--timed-rows", "0", "--output", "jsonl"]
    launch = f"{sys.executable} {SYSTEMS} bare 0"
    with replicas("bare", ["", ""]) as processes:
        listed = f"mine={processes[0].address},{processes[1].address}"
        for systems in (["--system", listed], ["--launch", launch, "--replicas", "2"]):
            done = preloaded.run(
                [CBENCH, "memory", *systems, *flags],
                capture_output=True,
                text=True,
                timeout=300,
                cwd=tmp_path,
            )
            assert done.returncode == 0, done.stderr
            rows = [json.loads(line) for line in done.stdout.splitlines()]
            assert [row["scores"]["contains"] for row in rows] == [1.0] * 36
            assert len({row["replica"] for row in rows}) == 2
