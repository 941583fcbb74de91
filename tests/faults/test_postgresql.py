"""A shared store whose database goes away, and owners that sleep through their leases."""

import asyncio
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from cbench_client import BenchClient
from cbench_client._gen.cbench.v1 import bench_pb2
from cbench_server.daemon.summary_program import summarize_apart
from cbench_server.errors import StoreAway
from cbench_server.events import RowScored
from cbench_server.results import EvalRow
from cbench_server.runs.owned_store import OwnedStore
from cbench_server.spec import Run
from tests.e2e.following import Followed, follow
from tests.e2e.processes import DaemonProcess, Process, examples, start_held, start_system
from tests.faults.machine import small_disk
from tests.fixtures.postgres import PASSWORD, PostgresServer, postgres_server
from tests.fixtures.stores import Place
from tests.fixtures.waiting import wait_until
from tests.storage.conftest import make_row as make_row
from tests.storage.conftest import make_run as make_run

# It stops and starts a database server of its own.
pytestmark = pytest.mark.faults

MakeRun = Callable[..., Run]
MakeRow = Callable[..., EvalRow]

ROWS = 200
FLAGS = ("--lease-seconds", "3")


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server of this file's own, which it stops."""
    with postgres_server() as running:
        yield running


@contextmanager
def daemons(store: str, tmp_path: Path, *names: str) -> Iterator[list[DaemonProcess]]:
    started = [
        DaemonProcess(tmp_path / name, *FLAGS, env={"CBENCH_STORE": store}) for name in names
    ]
    try:
        yield started
    finally:
        for each in started:
            if each.process.poll() is None:
                each.process.send_signal(signal.SIGCONT)
                each.kill()


def spec_of(client: BenchClient, system: Process, rows: int = ROWS) -> dict[str, Any]:
    digest = client.upload(examples(rows))[0]
    return {
        "systems": [{"name": "echo", "target": system.address}],
        "datasets": [{"name": "sent", "upload": digest}],
        "timed_rows": 0,
        "asked_again": 0,
    }


def assert_exact(followed: Followed, rows: int = ROWS) -> None:
    assert (followed.state, followed.failures) == ("SUCCEEDED", {})
    assert sorted(followed.keys) == [("echo", ordinal, 0) for ordinal in range(rows)]


@pytest.mark.parametrize(
    ("how", "seconds"),
    [(signal.SIGINT, 0.0), (signal.SIGQUIT, 0.0), (signal.SIGQUIT, 30.0)],
    ids=["stopped", "crashed", "away for long"],
)
def test_a_run_waits_while_the_database_is_away_and_goes_on(
    server: PostgresServer, tmp_path: Path, how: signal.Signals, seconds: float
) -> None:
    gate = tmp_path / "gate"
    with (
        start_held(gate, 50) as system,
        daemons(server.new_store(), tmp_path, "one", "two") as (daemon, _),
        BenchClient(daemon.address) as client,
    ):
        run_id = client.start(spec_of(client, system))
        wait_until(lambda: client.get(run_id).progress.completed_rows >= 20)
        seen = Followed()
        events = client.watch(run_id)
        seen.take(next(events))  # The stream is open from here on.
        server.stop(how)
        try:
            gate.touch()
            for event in events:
                seen.take(event)
                if event.WhichOneof("kind") == "state_change":
                    told = event.state_change
                    if told.state == bench_pb2.RUN_STATE_WAITING:
                        assert server.address().rpartition("@")[2].partition("/")[0] in str(told)
                        break
            # All leases lapse meanwhile: either daemon may go on.
            time.sleep(seconds)
        finally:
            server.start()
        for event in events:
            seen.take(event)
        assert_exact(seen)
        assert PASSWORD not in "".join(daemon.errors)


def test_rows_are_read_to_their_end_though_the_database_stops_meanwhile(
    server: PostgresServer, tmp_path: Path, make_run: MakeRun, make_row: MakeRow
) -> None:
    """As they are for the summary of a run, which must not fail for it."""
    place = Place(tmp_path, server.new_store())

    async def read() -> list[int]:
        store = place.open()
        await store.create_run(make_run())
        claim = await store.owners.acquire("r1")
        assert claim is not None
        await store.append("r1", [RowScored(make_row(n)) for n in range(1500)], claim=claim)
        owned = OwnedStore(store, claim)
        pages = owned.iterate_rows("r1", "a")
        rows = await anext(pages)
        server.stop(signal.SIGINT)
        try:
            with pytest.raises(StoreAway, match="cannot be reached"):
                await summarize_apart(tmp_path, place.address, [], "r1")
            following = asyncio.ensure_future(anext(pages))
            while not owned.away:
                await asyncio.sleep(0.05)
        finally:
            await asyncio.to_thread(server.start)
        rows += await following
        rows += [row async for page in pages for row in page]
        await store.close()
        return [row.ordinal for row in rows]

    assert asyncio.run(read()) == list(range(1500))


def test_an_owner_that_sleeps_past_its_lease_changes_nothing_any_more(
    server: PostgresServer, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    with (
        start_held(gate, 50) as system,
        daemons(server.new_store(), tmp_path, "one", "two") as (first, second),
        BenchClient(first.address) as client,
        BenchClient(second.address) as other,
    ):
        run_id = client.start(spec_of(client, system))
        wait_until(lambda: other.get(run_id).progress.completed_rows >= 20)
        first.process.send_signal(signal.SIGSTOP)
        wait_until(lambda: "resumed unfinished runs" in "".join(second.errors))
        first.process.send_signal(signal.SIGCONT)
        gate.touch()
        assert_exact(follow(other.watch(run_id)))
        # The cursor of one daemon holds at the other, each event once and in order.
        assert_exact(follow(client.watch(run_id)))
        wait_until(lambda: "another owner by now" in "".join(first.errors))


def test_a_cancel_at_another_daemon_reaches_the_owner(
    server: PostgresServer, tmp_path: Path
) -> None:
    with (
        start_held(tmp_path / "gate", 50) as system,
        daemons(server.new_store(), tmp_path, "one", "two") as (first, second),
        BenchClient(first.address) as client,
        BenchClient(second.address) as other,
    ):
        run_id = client.start(spec_of(client, system))
        wait_until(lambda: other.get(run_id).progress.completed_rows >= 20)
        other.cancel(run_id)
        wait_until(lambda: other.get(run_id).state == bench_pb2.RUN_STATE_CANCELLED)
        assert client.get(run_id).state == bench_pb2.RUN_STATE_CANCELLED


@contextmanager
def troubled(server: PostgresServer, kind: str) -> Iterator[tuple[str, Any, Any]]:
    """Give a store of a user without rights, what brings it into trouble, and what ends that."""
    name = f"worker_{kind}"
    server.sql(f"CREATE ROLE {name} LOGIN PASSWORD 'own'")
    options = ""
    stack = ExitStack()
    if kind == "full":
        folder = stack.enter_context(small_disk(server.folder / "small", 24))
        server.give(folder)
        server.sql(f"CREATE TABLESPACE {name} LOCATION '{folder}'")
        options = f" TABLESPACE {name}"
    server.sql(f"CREATE DATABASE {name} OWNER {name}{options}")
    own = server.address(name)
    store = f"postgresql://{name}:own@{own.rpartition('@')[2]}"
    cut = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{name}'"

    def change(*statements: str) -> None:
        for statement in statements:
            server.sql(statement, own if "TABLE" in statement else "")

    def fill() -> None:
        server.sql("CREATE TABLE filler (body text)", own)
        with suppress(psycopg.errors.DiskFull):
            while True:
                server.sql(
                    "INSERT INTO filler SELECT repeat(md5(random()::text), 60) "
                    "FROM generate_series(1, 500)",
                    own,
                )

    troubles: dict[str, tuple[Any, Any]] = {
        "connections": (
            lambda: change(f"ALTER ROLE {name} CONNECTION LIMIT 0", cut),
            lambda: change(f"ALTER ROLE {name} CONNECTION LIMIT -1"),
        ),
        "read_only": (
            lambda: change(f"ALTER ROLE {name} SET default_transaction_read_only = on", cut),
            lambda: change(f"ALTER ROLE {name} RESET default_transaction_read_only", cut),
        ),
        "full": (fill, lambda: change("DROP TABLE filler")),
    }
    try:
        yield (store, *troubles[kind])
    finally:
        server.sql(cut)
        server.sql(f"DROP DATABASE {name} WITH (FORCE)")
        if kind == "full":
            server.sql(f"DROP TABLESPACE {name}")
        stack.close()


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("connections", "has no connection left"),
        ("read_only", "is read-only, as a standby is"),
        ("full", "no space is left"),
    ],
)
def test_a_run_waits_for_a_database_in_trouble_says_why_and_goes_on(
    server: PostgresServer, tmp_path: Path, kind: str, words: str
) -> None:
    gate = tmp_path / "gate"
    with (
        troubled(server, kind) as (store, begin, end),
        start_held(gate, 50) as system,
        daemons(store, tmp_path, "one") as (daemon,),
        BenchClient(daemon.address) as client,
    ):
        run_id = client.start(spec_of(client, system))
        wait_until(lambda: client.get(run_id).progress.completed_rows >= 20)
        seen = Followed()
        events = client.watch(run_id)
        seen.take(next(events))
        begin()
        gate.touch()
        for event in events:
            seen.take(event)
            told = event.state_change
            if told.state == bench_pb2.RUN_STATE_WAITING:
                assert words in told.reason
                break
        end()
        for event in events:
            seen.take(event)
        assert_exact(seen)


def test_owners_that_are_killed_ten_times_in_turn_lose_and_repeat_no_row(
    server: PostgresServer, tmp_path: Path
) -> None:
    rows = 2000
    store = server.new_store()
    with (
        start_system("echo", "", "0.3") as system,
        daemons(store, tmp_path, "a", "b") as running,
    ):
        with BenchClient(running[0].address) as client:
            run_id = client.start(spec_of(client, system, rows))
        for number in range(10):
            with BenchClient(running[1].address) as other:
                before = other.get(run_id).progress.completed_rows
                # At least so many that the run is not taken for what kills its daemons.
                wait_until(
                    lambda other=other, before=before: (
                        other.get(run_id).progress.completed_rows >= before + 20
                    )
                )
                assert other.get(run_id).state == bench_pb2.RUN_STATE_RUNNING
            running.pop(0).kill()
            home = tmp_path / f"again-{number}"
            running.append(DaemonProcess(home, *FLAGS, env={"CBENCH_STORE": store}))
        with BenchClient(running[0].address) as client:
            assert_exact(follow(client.watch(run_id)), rows)


def test_an_owner_that_is_killed_is_followed_within_45_seconds_by_default(
    server: PostgresServer, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    env = {"CBENCH_STORE": server.new_store()}
    with (
        start_held(gate, 50) as system,
        DaemonProcess(tmp_path / "one", env=env) as first,
        DaemonProcess(tmp_path / "two", env=env) as second,
        BenchClient(second.address) as other,
    ):
        with BenchClient(first.address) as client:
            run_id = client.start(spec_of(client, system))
            wait_until(lambda: client.get(run_id).progress.completed_rows >= 20)
        first.kill()
        killed = time.monotonic()
        wait_until(lambda: "resumed unfinished runs" in "".join(second.errors), timeout=60)
        assert time.monotonic() - killed < 45
        gate.touch()
        assert_exact(follow(other.watch(run_id)))
