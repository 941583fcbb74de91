"""Held ports: refused until someone listens, given to nobody else, and taken again and again."""

import errno
import socket
import struct

import pytest

from tests.fixtures.ports import held_port

# Of <linux/in.h>: from which ports the kernel chooses one for this socket.
IP_LOCAL_PORT_RANGE = 51


def test_it_refuses_connections_until_someone_listens_there_and_afterwards() -> None:
    port = held_port()
    for _ in range(3):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
        with socket.create_server(("127.0.0.1", port)):
            socket.create_connection(("127.0.0.1", port)).close()


@pytest.mark.parametrize("listened", [False, True], ids=["never used", "used before"])
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::1"])
@pytest.mark.parametrize(
    "settings",
    [(), (socket.SO_REUSEADDR,), (socket.SO_REUSEADDR, socket.SO_REUSEPORT)],
    ids=["plain", "reuseaddr", "reuseport"],
)
def test_the_kernel_gives_it_to_nobody_who_asks_for_any_port(
    settings: tuple[int, ...], host: str, listened: bool
) -> None:
    port = held_port()
    if listened:
        socket.create_server(("127.0.0.1", port)).close()
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as other:
        for setting in settings:
            other.setsockopt(socket.SOL_SOCKET, setting, 1)
        try:
            only_this = struct.pack("I", port << 16 | port)
            other.setsockopt(socket.IPPROTO_IP, IP_LOCAL_PORT_RANGE, only_this)
        except OSError:
            pytest.skip("the choice of a port cannot be narrowed before Linux 6.3")
        with pytest.raises(OSError) as refused:
            other.bind((host, 0))
    assert refused.value.errno == errno.EADDRINUSE
