"""Upkeep of the store through a daemon: damage is named, old runs and leftovers go, quotas hold."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cbench_client import BenchClient, Refused
from cbench_client._gen.cbench.v1 import bench_pb2
from cbench_server.storage.database import connect
from cbench_server.storage.transaction import Transaction
from tests.e2e.following import follow
from tests.e2e.processes import DaemonProcess, wait_until
from tests.fixtures import preloaded
from tests.fixtures.preloaded import CBENCH

SPEC = {
    "systems": [{"builtin": "identity"}],
    "datasets": [{"name": "mini-qa", "max_examples": 2}],
}


@contextmanager
def daemon_at(home: Path, *flags: str) -> Iterator[BenchClient]:
    with DaemonProcess(home, *flags) as process, BenchClient(process.address) as client:
        yield client


def make_runs(client: BenchClient, count: int) -> list[str]:
    for _ in range(count):
        assert follow(client.evaluate(SPEC)).state == "SUCCEEDED"
    return [run.run_id for run in client.list()][::-1]


def change(home: Path, *statements: str) -> None:
    connection = sqlite3.connect(home / "cbench.db")
    for statement in statements:
        assert connection.execute(statement).rowcount > 0
    connection.commit()
    connection.close()


def test_a_damaged_run_is_listed_by_name_and_hides_and_blocks_no_other(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with daemon_at(home) as client:
        first, second, third, fourth = make_runs(client, 4)
    change(
        home,
        "UPDATE runs SET record = substr(record, 1, 90) WHERE id = 1",
        "UPDATE run_systems SET run = 99 WHERE run = 2",
        # As a killed daemon leaves a run.
        "UPDATE runs SET state = 'running', sum = -1 WHERE id = 3",
    )
    with daemon_at(home) as client:
        listed = {run.run_id: run for run in client.list()}
        assert list(listed) == [fourth, third, second, first]
        for run_id in (first, second, third):
            assert listed[run_id].failure.reason == "STORE_CORRUPT"
            assert f"cbench runs salvage {run_id}" in listed[run_id].failure.message
            with pytest.raises(Refused) as refused:
                client.get(run_id)
            assert (refused.value.code, refused.value.reason) == ("DATA_LOSS", "STORE_CORRUPT")
        assert not listed[fourth].HasField("failure")
        assert len(list(client.rows(fourth))) == 2
        # One whose state cannot be told is not passed over, whatever is asked for.
        running = [run.run_id for run in client.list(states=[bench_pb2.RUN_STATE_RUNNING])]
        assert running == [third]
        fifth = make_runs(client, 1)[-1]
        # A row is damaged where its run's record is not.
        change(home, "UPDATE events SET head = x'00' WHERE run = 4 AND ordinal = 1")
        page = b"".join(client.report(fifth, compare_run_ids=[first, fourth])).decode()
        for run_id in (first, fourth):
            assert f"{run_id} is left out of the comparison" in page
        client.delete(third)
    # What is advised can be done.
    delete = [CBENCH, "runs", "delete", first, second[: len(second) - 1], fourth]
    done = preloaded.run(delete, env={**os.environ, "CBENCH_HOME": str(home)}, capture_output=True)
    assert done.returncode == 0, done.stderr
    with daemon_at(home) as client:
        assert [run.run_id for run in client.list()] == [fifth]


def runs_with_events(connection: sqlite3.Connection) -> list[tuple[int]]:
    return connection.execute("SELECT DISTINCT run FROM events").fetchall()


def test_a_daemon_deletes_what_its_settings_let_go_and_what_the_dead_have_left(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    with daemon_at(home) as client:
        runs = make_runs(client, 3)
    # As a deletion that was cut off, a killed run and a killed upload leave them.
    connection = connect(home / "cbench.db")
    assert Transaction(connection, careful=False).mark_deleted(runs[0]) == 1
    (home / "locks" / "gone.lock").touch()
    (home / "uploads").mkdir(exist_ok=True)
    (home / "uploads" / "x.part").write_bytes(b"half")
    with daemon_at(home, "--retention-runs", "1") as client:
        wait_until(lambda: [run.run_id for run in client.list()] == runs[-1:])
        # A run is hidden first, and its rows go piece by piece.
        wait_until(lambda: runs_with_events(connection) == [(3,)])
        connection.close()
        wait_until(lambda: not [*home.glob("locks/*"), *home.glob("uploads/*.part")])


def test_quotas_refuse_with_their_names_and_lose_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with daemon_at(home) as client:
        [run] = make_runs(client, 1)
    change(home, "INSERT INTO run_labels VALUES (1, 'filler', zeroblob(2000000), 0)")
    flags = ("--max-store-mb", "1", "--max-upload-mb", "1", "--max-uploads-mb", "1")
    with daemon_at(home, *flags) as client:
        with pytest.raises(Refused, match="max_store_mb") as full:
            follow(client.evaluate(SPEC))
        assert (full.value.code, full.value.reason) == ("RESOURCE_EXHAUSTED", "STORE_FULL")
        with pytest.raises(Refused, match="max_upload_mb") as large:
            client.upload([{"id": 1, "context": os.urandom(1_500_000).hex()}])
        assert large.value.code == "RESOURCE_EXHAUSTED"
        assert len(list(client.rows(run))) == 2
