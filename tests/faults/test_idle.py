"""Connections on which nothing is asked are closed, and made again by those who need them."""

import socket

import pytest

from cbench_client import BenchClient
from cbench_server.rpc.server import IDLE_SECONDS
from tests.e2e.processes import DaemonProcess

# What every HTTP/2 connection begins with: a frame of settings that sets nothing, and one that
# agrees to those of the server.
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
AGREED = bytes([0, 0, 0, 4, 1, 0, 0, 0, 0])


@pytest.mark.faults
@pytest.mark.timeout(2 * IDLE_SECONDS + 60)
def test_a_connection_without_a_call_is_closed_and_made_again(
    daemon: DaemonProcess, client: BenchClient
) -> None:
    assert list(client.list()) == []
    host, _, port = daemon.address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=2 * IDLE_SECONDS) as idle:
        idle.sendall(HELLO)
        heard = bytearray(idle.recv(4096))
        idle.sendall(AGREED)
        while piece := idle.recv(4096):
            heard += piece
    # It was greeted and told to go, not thrown out for what it said.
    assert b"max_idle" in heard
    assert list(client.list()) == []
