"""What a daemon takes on, and what it refuses."""

from pathlib import Path

import pytest

from cbench_client import BenchClient, Refused

from .following import follow, run
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


def test_a_row_too_large_for_a_message_is_sent_without_what_makes_it_so(tmp_path: Path) -> None:
    mark, large = "TOO_LARGE_TO_SEND", "x" * 2_400_000
    given = [{"id": n, "context": large if n else "", "question": "q"} for n in range(3)]
    with (
        DaemonProcess(tmp_path / "home", "--max-message-mb", "4") as daemon,
        BenchClient(daemon.address) as client,
    ):
        seen = run(client, {"systems": [{"builtin": "identity"}]}, given)
        run_id = seen.finished.run_id
        for parts in ({"include_processed": True}, {"include_original": True}):
            assert all(mark not in row.marks for row in client.rows(run_id, **parts))
        rows = list(client.rows(run_id, include_processed=True, include_original=True))
        assert [mark in row.marks for row in rows] == [False, True, True]
        assert [row.HasField("original") for row in rows] == [True, False, False]
        assert all(row.processed for row in rows)
        # An answer that fits by itself does not fit with all else of its row.
        digest, _ = client.upload([{**given[1], "context": "x" * (2**22 - 130)}])
        full = {"systems": [{"builtin": "identity"}], "datasets": [{"name": "b", "upload": digest}]}
        run_id = follow(client.evaluate(full)).finished.run_id
        for (row,) in (
            list(client.rows(run_id, include_processed=True)),
            follow(client.watch(run_id, include_processed=True)).rows,
        ):
            assert (list(row.marks), dict(row.processed)) == ([mark], {})
            assert row.output_tokens > 0
        assert b"x" * 4_000_000 in b"".join(client.export(run_id, "jsonl", with_texts=True))


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
