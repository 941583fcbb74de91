"""Networks that swallow packets, peers that are stopped, and calls that take longer than pings."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cbench_client import BenchClient
from tests.e2e.following import follow
from tests.e2e.processes import DaemonProcess, Process, examples, wait_until

from .machine import Wire, wire
from .test_waiting import WAITING, given

FAR = Path(__file__).with_name("far_system.py")
STOCK = Path(__file__).with_name("stock_system.py")
# Pings go out after 30 s of silence and are waited for 10 s; the rest is the machine's.
NOTICED_S = 60


@pytest.fixture
def cable() -> Iterator[Wire]:
    with wire() as made:
        yield made


def far(cable: Wire, how: str, address: str) -> Process:
    return Process(cable.inside([sys.executable, str(FAR), how, address, "0.02"]))


def waits_and_goes_on(
    client: BenchClient, spec: dict[str, Any], cut: Callable[[], None], mend: Callable[[], None]
) -> None:
    """Cut a system off in the middle of a run: it is missed in time, and costs no row."""
    run_id = client.start({**spec, "datasets": given(client, 600), "timed_rows": 0})
    wait_until(lambda: client.get(run_id).progress.completed_rows >= 20)
    cut()
    try:
        run = wait_until(lambda: (run := client.get(run_id)).state == WAITING and run, NOTICED_S)
        assert 'system "echo" is away' in run.waiting_reason
    finally:
        mend()
    seen = follow(client.watch(run_id))
    assert (seen.state, seen.failures, len(seen.rows)) == ("SUCCEEDED", {}, 600)
    assert seen.states[:3] == ["RUNNING", "WAITING", "RUNNING"]


@pytest.mark.faults
@pytest.mark.parametrize("row_timeout", [120.0, 5.0])
def test_a_system_behind_a_cut_cable_is_waited_for(
    client: BenchClient, cable: Wire, row_timeout: float
) -> None:
    with far(cable, "serve", f"{cable.there}:45001"):
        spec = {"systems": [{"target": f"{cable.there}:45001"}], "row_timeout": row_timeout}
        waits_and_goes_on(client, spec, cable.cut, cable.mend)


@pytest.mark.faults
def test_an_attached_system_behind_a_cut_cable_is_waited_for(tmp_path: Path, cable: Wire) -> None:
    flags = ("--address", f"{cable.here}:45002", "--unsafe-allow-remote")
    with (
        DaemonProcess(tmp_path / "home", *flags) as daemon,
        BenchClient(daemon.address) as client,
        far(cable, "attach", daemon.address),
    ):
        wait_until(lambda: any(each.name == "echo" for each in client.components().systems))
        waits_and_goes_on(client, {"systems": [{"attached": "echo"}]}, cable.cut, cable.mend)


@pytest.mark.faults
@pytest.mark.parametrize("row_timeout", [120.0, 5.0])
def test_an_attached_system_that_is_stopped_is_waited_for(
    daemon: DaemonProcess, client: BenchClient, row_timeout: float
) -> None:
    with Process([sys.executable, str(FAR), "attach", daemon.address, "0.02"]) as system:
        wait_until(lambda: any(each.name == "echo" for each in client.components().systems))
        spec = {"systems": [{"attached": "echo"}], "row_timeout": row_timeout}
        waits_and_goes_on(
            client,
            spec,
            lambda: os.kill(system.pid, signal.SIGSTOP),
            lambda: os.kill(system.pid, signal.SIGCONT),
        )


@pytest.mark.faults
@pytest.mark.timeout(300)
@pytest.mark.parametrize("how", ["unary", "stream"])
def test_a_long_call_to_a_server_that_knows_no_pings_is_made_once(
    client: BenchClient, tmp_path: Path, how: str
) -> None:
    """gRPC's own settings allow a ping every five minutes, and break off at the third."""
    log = tmp_path / "calls"
    with Process([sys.executable, str(STOCK), how, str(log), "130"]) as system:
        digest, _ = client.upload(examples(2))
        spec = {
            "systems": [{"target": system.address}],
            "datasets": [{"name": "given", "upload": digest}],
            "row_timeout": 250.0,
            "timed_rows": 0,
            "asked_again": 0,
        }
        seen = follow(client.evaluate(spec))
    assert (seen.state, seen.failures, len(seen.rows)) == ("SUCCEEDED", {}, 2)
    assert sorted(log.read_text().split()) == ["e0", "e1"]
    assert "WAITING" not in seen.states
