"""What docs/operations.md promises and no other test shows."""

import sqlite3
from contextlib import closing
from pathlib import Path

import grpc
import pytest

from cbench_client import BenchClient, Refused
from cbench_client._gen.cbench.v1 import bench_pb2, bench_pb2_grpc
from cbench_server.storage.inspection import Inspection
from tests.e2e.following import follow, run
from tests.e2e.processes import DaemonProcess, examples, start_held, start_system, wait_until

from .test_requests import BUILTIN, spec_of


def test_a_backup_made_while_a_run_goes_on_is_whole(
    daemon: DaemonProcess, client: BenchClient, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    with start_system("echo", "", "0.005") as system:
        done = follow(client.evaluate(BUILTIN)).finished.run_id
        run_id = client.start(spec_of(client, system, 400))
        wait_until(lambda: client.get(run_id).progress.completed_rows >= 50)
        with (
            closing(sqlite3.connect(daemon.home / "cbench.db")) as store,
            closing(sqlite3.connect(copy / "cbench.db")) as backup,
        ):
            store.backup(backup)
        client.cancel(run_id)
        rows = [row.SerializeToString() for row in client.rows(done)]
    assert list(Inspection().of_home(copy)) == []
    with DaemonProcess(copy) as other, BenchClient(other.address) as reader:
        assert [row.SerializeToString() for row in reader.rows(done)] == rows
        assert {each.run_id for each in reader.list()} == {done, run_id}


def test_calls_beyond_the_limit_are_refused_and_may_be_tried_again(tmp_path: Path) -> None:
    with (
        start_held(tmp_path / "gate") as system,
        DaemonProcess(tmp_path / "home", "--max-calls", "2") as daemon,
        BenchClient(daemon.address) as client,
    ):
        run_id = client.start(spec_of(client, system, 2000))
        watchers = [client.watch(run_id) for _ in range(2)]
        for watcher in watchers:
            next(watcher)
        with pytest.raises(Refused) as refused:
            client.get(run_id)
        assert refused.value.code == "RESOURCE_EXHAUSTED"


def test_calls_beyond_those_of_a_connection_wait_at_the_client(
    daemon: DaemonProcess, client: BenchClient, tmp_path: Path
) -> None:
    with (
        start_held(tmp_path / "gate") as system,
        grpc.insecure_channel(daemon.address) as channel,
    ):
        run_id = client.start(spec_of(client, system, 2000))
        stub = bench_pb2_grpc.BenchStub(channel)
        followed = bench_pb2.WatchRunRequest(run_id=run_id)
        watchers = [stub.WatchRun(followed) for _ in range(250)]
        for watcher in watchers:
            next(watcher)
        asked = bench_pb2.GetRunRequest(run_id=run_id)
        with pytest.raises(grpc.RpcError) as late:
            stub.GetRun(asked, timeout=1)
        assert late.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
        # Another connection has calls of its own, and this one has as soon as one ends.
        assert client.get(run_id).run_id == run_id
        watchers[0].cancel()
        assert stub.GetRun(asked, timeout=60).run.run_id == run_id
        client.cancel(run_id)


def test_the_log_holds_no_examples_answers_or_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CBENCH_TOKEN", "token-that-nobody-may-see")
    with (
        start_system("unreliable") as system,
        DaemonProcess(tmp_path / "home", "--log-level", "debug") as daemon,
        BenchClient(daemon.address, token="token-that-nobody-may-see") as client,
    ):
        data = examples(30, context="context-that-nobody-may-see")
        for example in data:
            example["question"] = "answer-that-nobody-may-see"
        spec = {"systems": [{"target": system.address}], "row_timeout": 1.0, "timed_rows": 0}
        seen = run(client, {**spec, "asked_again": 0}, data)
        assert seen.failures
        assert daemon.terminate() == 0
        assert daemon.errors
        assert not [line for line in daemon.errors if "nobody-may-see" in line]
