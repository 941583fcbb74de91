"""A database server whose standby takes over while a run is under way."""

import signal
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from cbench_client import BenchClient
from cbench_client._gen.cbench.v1 import bench_pb2
from tests.e2e.following import Followed, follow
from tests.e2e.processes import start_held, start_system
from tests.faults.test_postgresql import assert_exact, daemons, spec_of
from tests.fixtures.postgres import PASSWORD, PostgresServer, postgres_server
from tests.fixtures.waiting import wait_until

pytestmark = pytest.mark.faults


def both(primary: PostgresServer, standby: PostgresServer) -> str:
    """Return the address of a store that is at whichever of two is the primary."""
    parts = urlsplit(primary.new_store())
    host = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
    user = parts.netloc.rpartition("@")[0]
    return f"postgresql://{user}@{host}{parts.path}?{parts.query}&target_session_attrs=read-write"


def test_a_run_goes_on_at_a_standby_that_takes_over(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with (
        postgres_server() as primary,
        postgres_server(primary=primary) as standby,
        start_held(gate, 50) as system,
        daemons(both(primary, standby), tmp_path, "one", "two") as (daemon, second),
        BenchClient(daemon.address) as client,
        BenchClient(second.address) as other,
    ):
        primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
        primary.sql("SELECT pg_reload_conf()")
        run_id = client.start(spec_of(client, system))
        wait_until(lambda: client.get(run_id).progress.completed_rows >= 20)
        seen = Followed()
        events = client.watch(run_id)
        seen.take(next(events))
        primary.stop(signal.SIGQUIT)
        gate.touch()
        for event in events:
            seen.take(event)
            if event.state_change.state == bench_pb2.RUN_STATE_WAITING:
                break
        standby.sql("SELECT pg_promote()")
        for event in events:
            seen.take(event)
        assert_exact(seen)
        assert_exact(follow(other.watch(run_id)))
        assert PASSWORD not in "".join(daemon.errors + second.errors)


def test_a_run_whose_last_rows_a_standby_has_not_heard_of_makes_them_again(tmp_path: Path) -> None:
    rows = 400
    with (
        postgres_server() as primary,
        postgres_server(primary=primary) as standby,
        start_system("echo", "", "0.1") as system,
        daemons(both(primary, standby), tmp_path, "one", "two") as (daemon, second),
        BenchClient(daemon.address) as client,
        BenchClient(second.address) as other,
    ):
        run_id = client.start(spec_of(client, system, rows))
        wait_until(lambda: client.get(run_id).progress.completed_rows >= 20)
        for change in ("ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()"):
            standby.sql(change)
        had = client.get(run_id).progress.completed_rows
        wait_until(lambda: client.get(run_id).progress.completed_rows >= had + 20)
        primary.stop(signal.SIGQUIT)
        standby.sql("SELECT pg_promote()")
        wait_until(lambda: other.get(run_id).state == bench_pb2.RUN_STATE_SUCCEEDED)
        assert_exact(follow(other.watch(run_id)), rows)
        assert_exact(follow(client.watch(run_id)), rows)
        assert "has lost events of run" in "".join(daemon.errors)
