"""Connections on which nothing is asked are closed, and made again by those who need them."""

import threading

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from cbench_server.rpc.server import IDLE_SECONDS
from tests.e2e.processes import DaemonProcess


@pytest.mark.faults
@pytest.mark.timeout(3 * IDLE_SECONDS)
def test_a_connection_without_a_call_is_closed_and_made_again(daemon: DaemonProcess) -> None:
    closed = threading.Event()

    def noted(state: grpc.ChannelConnectivity) -> None:
        if was_ready.is_set() and state is grpc.ChannelConnectivity.IDLE:
            closed.set()

    was_ready = threading.Event()
    # A client of gRPC's would leave by itself after half an hour only.
    with grpc.insecure_channel(daemon.address) as channel:
        channel.subscribe(noted)
        health = health_pb2_grpc.HealthStub(channel)
        assert health.Check(health_pb2.HealthCheckRequest(), timeout=60).status == 1
        was_ready.set()
        assert closed.wait(2 * IDLE_SECONDS)
        assert health.Check(health_pb2.HealthCheckRequest(), timeout=60).status == 1
