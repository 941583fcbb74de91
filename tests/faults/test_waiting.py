"""Whatever a run needs may be away: it waits, says for what, and fails no row for it."""

import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cbench_client import Attachment, BenchClient
from tests.e2e.following import follow
from tests.e2e.processes import (
    DaemonProcess,
    Process,
    examples,
    start_held,
    start_system,
    wait_until,
)
from tests.fixtures.ports import held_port

PEERS = Path(__file__).with_name("peers.py")
STOCK = Path(__file__).with_name("stock_system.py")
WAITING, FAILED, ROWS = 6, 4, 200


def start_peer(what: str, port: int, gate: Path | None = None) -> Process:
    """Start one of peers.py; with a gate, a run is under way until that is touched."""
    return Process([sys.executable, str(PEERS), what, str(port), *([str(gate)] if gate else [])])


def given(client: BenchClient, count: int = ROWS) -> list[dict[str, Any]]:
    digest, _ = client.upload(examples(count))
    return [{"name": "given", "upload": digest}]


def spec_with(need: str, url: str, system: str = "") -> dict[str, Any]:
    """A run that needs a peer as what the test says."""
    model = {"base_url": f"http://{url}", "model": "m"}
    retries = {"max_retries": 1, "retry_base_delay": 0.01}
    judge = {"name": "memory-judge", "options": {**model, **retries, "pack": "strict"}}
    return {
        "evaluator": {
            "systems": [{"builtin": "identity"}],
            "evaluators": [{"name": "counts", "target": url}],
        },
        "judge": {
            "systems": [{"target": system}],
            "evaluators": [judge],
            "allow_unqualified_judges": True,
        },
        "reader": {"systems": [{"builtin": "identity"}], "reader": model, "anchors": False},
        "proxy": {"systems": [{"proxy": model, "name": "m"}]},
    }[need] | {"timed_rows": 0, "max_concurrency": 4}


@pytest.mark.parametrize(
    ("need", "what", "said"),
    [
        ("evaluator", "counts", 'evaluator "counts" is away'),
        ("judge", "judging-model", 'evaluator "memory-judge" is away'),
        ("reader", "model", "the reader is away"),
        ("proxy", "model", 'system "m" is away'),
    ],
)
def test_a_run_waits_for_what_it_needs_and_fails_no_row(
    client: BenchClient, tmp_path: Path, need: str, what: str, said: str
) -> None:
    port = held_port()
    with start_system("echo") as system:
        with start_peer(what, port, tmp_path / "gate") as peer:
            spec = {**spec_with(need, peer.address, system.address), "datasets": given(client)}
            run_id = client.start(spec)
            wait_until(lambda: client.get(run_id).progress.completed_rows >= 10)
        run = wait_until(lambda: (run := client.get(run_id)).state == WAITING and run)
        assert said in run.waiting_reason
        with start_peer(what, port):
            seen = follow(client.watch(run_id))
    assert (seen.state, seen.failures, len(seen.rows)) == ("SUCCEEDED", {}, ROWS)
    assert seen.states[:3] == ["RUNNING", "WAITING", "RUNNING"]
    notes = [note for row in seen.rows for note in row.evaluator_notes if note.HasField("failure")]
    assert not notes
    if need == "evaluator":
        assert {row.scores["counts"] for row in seen.rows} == {1.0}


@pytest.mark.faults
@pytest.mark.parametrize(
    ("need", "what", "said"),
    [
        ("evaluator", "counts", 'evaluator "counts" is away'),
        ("judge", "judging-model", 'evaluator "memory-judge" is away'),
        ("reader", "model", "the reader is away"),
        ("proxy", "model", 'system "m" is away'),
    ],
)
def test_what_is_stopped_is_waited_for_and_fails_no_row(
    client: BenchClient, tmp_path: Path, need: str, what: str, said: str
) -> None:
    """It takes connections, as the kernel does that for it, and answers nothing."""
    gate = tmp_path / "gate"
    with start_system("echo") as system, start_peer(what, held_port(), gate) as peer:
        spec = spec_with(need, peer.address, system.address)
        if need == "judge":
            spec["evaluators"][0]["options"]["timeout"] = 5
        run_id = client.start({**spec, "datasets": given(client), "row_timeout": 5.0})
        wait_until(lambda: client.get(run_id).progress.completed_rows >= 10)
        os.kill(peer.pid, signal.SIGSTOP)
        try:
            run = wait_until(lambda: (run := client.get(run_id)).state == WAITING and run, 120)
            assert said in run.waiting_reason
        finally:
            gate.touch()
            os.kill(peer.pid, signal.SIGCONT)
        seen = follow(client.watch(run_id))
    assert (seen.state, seen.failures, len(seen.rows)) == ("SUCCEEDED", {}, ROWS)
    notes = [note for row in seen.rows for note in row.evaluator_notes if note.HasField("failure")]
    assert not notes


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("need", "said"), [("reader", "the reader is away"), ("proxy", 'system "m" is away')]
)
def test_a_server_of_models_that_refuses_everything_is_waited_for(
    client: BenchClient, tmp_path: Path, need: str, said: str, status: int
) -> None:
    """As a gateway does whose server is started again, for longer than a row has time."""
    gate = tmp_path / "gate"
    with start_peer(f"refusing-{status}-model", held_port(), gate) as peer:
        spec = {**spec_with(need, peer.address), "datasets": given(client), "row_timeout": 1.0}
        run_id = client.start(spec)
        run = wait_until(lambda: (run := client.get(run_id)).state == WAITING and run)
        assert said in run.waiting_reason
        gate.touch()
        seen = follow(client.watch(run_id))
    assert (seen.state, seen.failures, len(seen.rows)) == ("SUCCEEDED", {}, ROWS)


def test_a_judge_that_goes_while_it_is_tested_is_waited_for(client: BenchClient) -> None:
    port = held_port()
    with start_system("echo") as system:
        with start_peer("dying-model", port) as peer:
            spec = spec_with("judge", peer.address, system.address)
            run_id = client.start({**spec, "datasets": given(client, 30)})
            peer.process.wait(60)
        run = wait_until(lambda: (run := client.get(run_id)).state == WAITING and run)
        assert "the judge is away" in run.waiting_reason
        with start_peer("model", port):
            seen = follow(client.watch(run_id))
    assert (seen.state, seen.failures, len(seen.rows)) == ("SUCCEEDED", {}, 30)


def test_an_evaluator_that_stays_away_fails_the_run_which_can_be_resumed(
    client: BenchClient, tmp_path: Path
) -> None:
    port = held_port()
    with start_peer("counts", port, tmp_path / "gate") as peer:
        spec = {**spec_with("evaluator", peer.address), "datasets": given(client)}
        run_id = client.start({**spec, "wait_timeout": 1.5})
        wait_until(lambda: client.get(run_id).progress.completed_rows >= 10)
    run = wait_until(lambda: (run := client.get(run_id)).state == FAILED and run)
    assert (run.failure.reason, run.failure.field) == ("EVALUATOR_GONE", "spec.evaluators[0]")
    with start_peer("counts", port):
        client.resume(run_id)
        seen = follow(client.watch(run_id))
    assert (seen.state, seen.failures, len(seen.rows)) == ("SUCCEEDED", {}, ROWS)


def test_a_pair_that_ends_its_evaluator_twice_is_noted_and_no_other(client: BenchClient) -> None:
    port = held_port()
    with start_peer("dies", port) as first:
        spec = spec_with("evaluator", first.address)
        spec["evaluators"] = [{"name": "dies", "target": first.address}]
        run_id = client.start({**spec, "datasets": given(client, 40)})
        first.process.wait(60)
    wait_until(lambda: client.get(run_id).state == WAITING)
    waited = client.get(run_id).last_sequence
    with start_peer("dies", port) as second:
        second.process.wait(60)
    with start_peer("dies", port):
        seen = follow(client.watch(run_id))
    assert waited
    assert (seen.state, seen.failures, len(seen.rows)) == ("SUCCEEDED", {}, 40)
    noted = {
        row.example_id.text: note.failure.message
        for row in seen.rows
        for note in row.evaluator_notes
        if note.HasField("failure")
    }
    assert noted.keys() == {"e5"}
    assert 'evaluator "dies" died twice with this row' in noted["e5"]


class Length:
    name = "length"

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        time.sleep(self._seconds)
        return {"length": 1.0}


def test_an_attached_evaluator_is_waited_for(daemon: DaemonProcess, client: BenchClient) -> None:
    spec = {
        "systems": [{"builtin": "identity"}],
        "evaluators": [{"name": "length", "attached": "length"}],
        "max_concurrency": 2,
    }
    with Attachment(Length(0.05), daemon.address) as first:
        first.wait_attached(60)
        run_id = client.start({**spec, "datasets": given(client, 1000)})
        wait_until(lambda: client.get(run_id).progress.completed_rows >= 10)
    run = wait_until(lambda: (run := client.get(run_id)).state == WAITING and run)
    assert 'evaluator "length" is away' in run.waiting_reason
    with Attachment(Length(0.0), daemon.address):
        seen = follow(client.watch(run_id))
    assert (seen.state, seen.failures, len(seen.rows)) == ("SUCCEEDED", {}, 1000)
    assert {row.scores["length"] for row in seen.rows} == {1.0}


def test_a_rescoring_waits_for_its_evaluator(client: BenchClient, tmp_path: Path) -> None:
    port = held_port()
    with start_peer("counts", port, tmp_path / "gate") as peer:
        datasets = given(client, 1000)
        spec = {"systems": [{"builtin": "identity"}], "datasets": datasets}
        parent = follow(client.evaluate(spec)).finished.run_id
        run_id = client.rescore(parent, [{"name": "counts", "target": peer.address}]).run_id
        wait_until(lambda: client.get(run_id).state == 2)
    run = wait_until(lambda: (run := client.get(run_id)).state == WAITING and run)
    assert 'evaluator "counts" is away' in run.waiting_reason
    with start_peer("counts", port):
        seen = follow(client.watch(run_id))
    assert (seen.state, seen.failures, len(seen.rows)) == ("SUCCEEDED", {}, 1000)
    assert {row.scores["counts"] for row in seen.rows} == {1.0}


def test_a_rescoring_whose_parent_is_deleted_says_that_rows_are_gone(
    client: BenchClient, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    with start_peer("counts", held_port(), gate) as peer:
        datasets = given(client, 1500)
        parent = follow(
            client.evaluate({"systems": [{"builtin": "identity"}], "datasets": datasets})
        )
        evaluators = [{"name": "counts", "target": peer.address}]
        child = client.rescore(parent.finished.run_id, evaluators)
        wait_until(lambda: client.get(child.run_id).state == 2)
        client.delete(parent.finished.run_id)
        gate.touch()
        run = wait_until(lambda: (run := client.get(child.run_id)).state == FAILED and run)
    assert run.failure.reason == "ROW_GONE"


def test_a_stopped_system_is_waited_for_though_its_rows_have_little_time(
    client: BenchClient,
) -> None:
    with start_system("echo", "", "0.05") as system:
        spec = {"systems": [{"target": system.address}], "row_timeout": 5.0, "timed_rows": 0}
        run_id = client.start({**spec, "datasets": given(client, 600)})
        wait_until(lambda: client.get(run_id).progress.completed_rows >= 20)
        os.kill(system.pid, signal.SIGSTOP)
        try:
            run = wait_until(lambda: (run := client.get(run_id)).state == WAITING and run)
            assert "takes no new connection" in run.waiting_reason
        finally:
            os.kill(system.pid, signal.SIGCONT)
        seen = follow(client.watch(run_id))
    assert (seen.state, seen.failures, len(seen.rows)) == ("SUCCEEDED", {}, 600)


def called_again(log: Path) -> str:
    """Return which example a system was called about twice, if there is one."""
    return next((each for each, times in Counter(log.read_text().split()).items() if times > 1), "")


def test_a_row_that_was_late_is_waited_for_when_its_system_dies(
    client: BenchClient, tmp_path: Path
) -> None:
    """It is made again while no other is, which is its first death all the same."""
    port, gate, log = held_port(), tmp_path / "gate", tmp_path / "calls"
    with start_held(gate, 100, log=str(log), port=port) as system:
        spec = {
            "systems": [{"target": system.address}],
            "datasets": given(client, 120),
            "row_timeout": 1.0,
            "max_concurrency": 4,
            "timed_rows": 0,
        }
        run_id = client.start(spec)
        again = wait_until(lambda: called_again(log), 60)
    wait_until(lambda: client.get(run_id).state == WAITING)
    gate.touch()
    with start_held(gate, 0, log=str(log), port=port):
        seen = follow(client.watch(run_id))
    assert (seen.state, len(seen.rows)) == ("SUCCEEDED", 120)
    assert again not in seen.failures, seen.failures
    assert "UNAVAILABLE" not in seen.failures.values()


def start_keeping(how: str, gate: Path) -> Process:
    """Start what answers some calls in a way of its own, and the others when the gate is there."""
    if how == "stream":
        return start_held(gate, 5)
    if how == "proxy":
        return start_peer("model", held_port(), gate)
    return Process([sys.executable, str(STOCK), how, os.devnull, "0", str(gate)])


@pytest.mark.parametrize(("how", "answered"), [("stream", 5), ("unary", 5), ("proxy", 20)])
def test_a_daemon_that_is_stopped_fails_no_row_for_it(
    daemon: DaemonProcess, client: BenchClient, tmp_path: Path, how: str, answered: int
) -> None:
    """It was stopped for longer than a row has time, and what it waited for came meanwhile."""
    gate = tmp_path / "gate"
    with start_keeping(how, gate) as system:
        target = {"systems": [{"target": system.address}]}
        need = spec_with(how, system.address) if how == "proxy" else target
        spec = {**need, "datasets": given(client, 40)}
        limits = {"row_timeout": 2.0, "wait_timeout": 2.0, "max_concurrency": 1, "timed_rows": 0}
        run_id = client.start({**spec, **limits})
        wait_until(lambda: client.get(run_id).progress.completed_rows == answered)
        os.kill(daemon.pid, signal.SIGSTOP)
        try:
            gate.touch()
            time.sleep(4)
        finally:
            os.kill(daemon.pid, signal.SIGCONT)
        seen = follow(client.watch(run_id))
    assert (seen.state, seen.failures, len(seen.rows)) == ("SUCCEEDED", {}, 40)
