"""Networks that swallow packets, peers that are stopped, and calls that take longer than pings."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from cbench_client import BenchClient
from cbench_client._gen.cbench.v1 import system_pb2
from tests.e2e.following import follow
from tests.e2e.processes import DaemonProcess, Process, wait_until

from .machine import Wire, wire
from .test_waiting import STOCK, WAITING, given

FAR = Path(__file__).with_name("far_system.py")
# Pings go out after 30 s of silence and are waited for 10 s; the rest is the machine's.
NOTICED_S = 90
# Longer than it takes to ping three times, 30 s apart, with a third of it to spare.
LONG_CALL_S = 130
RUNNING = 2


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


def stock(how: str, log: Path) -> Process:
    return Process([sys.executable, str(STOCK), how, str(log), str(LONG_CALL_S)])


def pinged_too_often(target: str) -> grpc.RpcError:
    """Make a call as clients do that ping whenever they like; return how it ends."""
    options = [("grpc.keepalive_time_ms", 10_000), ("grpc.http2.max_pings_without_data", 0)]
    with grpc.insecure_channel(target, options) as channel:
        call = channel.unary_unary(
            "/cbench.v1.System/Process",
            system_pb2.ProcessRequest.SerializeToString,
            system_pb2.ProcessResponse.FromString,
        )
        with pytest.raises(grpc.RpcError) as broken:
            call(system_pb2.ProcessRequest(), timeout=2 * LONG_CALL_S)
    return broken.value


@pytest.mark.faults
@pytest.mark.timeout(500)
def test_a_long_call_to_a_server_that_knows_no_pings_is_made_once(
    client: BenchClient, tmp_path: Path
) -> None:
    """gRPC's own settings allow a ping every five minutes, and break off at the third."""
    logs = {how: tmp_path / how for how in ("unary", "stream", "pinged")}
    with (
        stock("unary", logs["unary"]) as unary,
        stock("stream", logs["stream"]) as stream,
        stock("unary", logs["pinged"]) as pinged,
    ):
        common = {
            "datasets": given(client, 1),
            "row_timeout": 400.0,
            "timed_rows": 0,
            "asked_again": 0,
        }
        targets = {"unary": unary.address, "stream": stream.address}
        runs = {
            how: client.start({**common, "systems": [{"target": target}]})
            for how, target in targets.items()
        }
        # The control: these servers do break off, and before the calls of the runs are over.
        assert pinged_too_often(pinged.address).details() == "Too many pings"
        assert {client.get(run_id).state for run_id in runs.values()} == {RUNNING}
        for how, run_id in runs.items():
            seen = follow(client.watch(run_id))
            assert (seen.state, seen.failures, len(seen.rows)) == ("SUCCEEDED", {}, 1)
            assert seen.states == ["RUNNING"]
            assert logs[how].read_text().split() == ["e0"]
