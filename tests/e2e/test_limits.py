"""What a daemon takes on, and what it refuses."""

from pathlib import Path

import pytest

from cbench_client import BenchClient, Refused

from .following import follow
from .processes import DaemonProcess, examples, start_held, start_system, wait_until


def test_runs_beyond_the_limit_are_queued_and_then_refused(tmp_path: Path) -> None:
    flags, gate = ["--max-runs", "1", "--max-queued", "1"], tmp_path / "gate"
    with (
        start_held(gate) as system,
        DaemonProcess(tmp_path / "home", *flags) as daemon,
        BenchClient(daemon.address) as client,
    ):
        digest, _ = client.upload(examples(300))
        spec = {
            "systems": [{"target": system.address}],
            "datasets": [{"name": "given", "upload": digest}],
        }
        first = client.start(spec)
        second = client.start(spec)
        assert client.get(second).state == 1
        with pytest.raises(Refused) as refused:
            client.start(spec)
        assert refused.value.code == "RESOURCE_EXHAUSTED"
        client.cancel(first)
        wait_until(lambda: client.get(second).state == 2)
        gate.touch()
        assert len(follow(client.watch(second)).rows) == 300


def test_a_message_beyond_the_limit_is_refused_with_its_size(tmp_path: Path) -> None:
    with (
        DaemonProcess(tmp_path / "home", "--max-message-mb", "1") as daemon,
        BenchClient(daemon.address) as client,
        pytest.raises(Refused),
    ):
        client.upload([{"id": 1, "context": "x" * 3_000_000}])


def test_a_fifty_megabyte_example_runs_and_comes_back_whole(
    daemon: DaemonProcess, client: BenchClient
) -> None:
    context = "The capital of France is Paris. " * 1_600_000
    with start_system("echo") as system:
        digest, _ = client.upload([{"id": 1, "context": context, "question": "q", "answer": "q"}])
        spec = {
            "systems": [{"target": system.address}],
            "datasets": [{"name": "given", "upload": digest}],
        }
        seen = follow(client.evaluate(spec))
    assert (seen.state, seen.rows[0].scores["exact_match"]) == ("SUCCEEDED", 1.0)
    (row,) = client.rows(seen.finished.run_id, include_processed=True)
    assert row.processed["context"].string_value == context


def test_finished_runs_are_deleted_once_they_are_old(tmp_path: Path) -> None:
    spec = {"systems": [{"builtin": "identity"}], "datasets": [{"name": "mini-qa"}]}
    with DaemonProcess(tmp_path / "home") as daemon, BenchClient(daemon.address) as client:
        follow(client.evaluate(spec))
        assert len(list(client.list())) == 1
    with (
        DaemonProcess(tmp_path / "home", "--retention-days", "0.0000001") as daemon,
        BenchClient(daemon.address) as client,
    ):
        wait_until(lambda: not list(client.list()))
