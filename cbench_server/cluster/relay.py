"""A relay from one address to another: `python relay.py LISTEN TARGET`, until its stdin ends.

A launched system that is started again gets another port, but its run knows the first
one. This program listens there and passes bytes on, whatever the system is written in. It is
a program rather than a thread of `cbench`, where it would wait for its turn in every call.
"""

import os
import socket
import sys
import threading
from contextlib import suppress

READY = b"ready\n"


def listen(address: str) -> socket.socket:
    """Listen at `HOST:PORT` or `unix:PATH`."""
    if path := _path(address):
        with suppress(FileNotFoundError):
            os.unlink(path)
        return socket.create_server(path, family=socket.AF_UNIX)
    host, port = _split(address)
    family, *_, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    return socket.create_server(place[:2], family=family)


def connect(address: str) -> socket.socket:
    """Connect to `HOST:PORT` or `unix:PATH`."""
    if path := _path(address):
        made = socket.socket(socket.AF_UNIX)
        made.connect(path)
        return made
    made = socket.create_connection(_split(address))
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def _path(address: str) -> str:
    return address.removeprefix("unix:") if address.startswith("unix:") else ""


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def accept(server: socket.socket, target: str) -> None:
    """Pass on what callers send, for ever."""
    while True:
        caller, _ = server.accept()
        if server.family != socket.AF_UNIX:
            caller.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            system = connect(target)
        except OSError:
            caller.close()
            continue
        for pair in ((caller, system), (system, caller)):
            threading.Thread(target=_pass_on, args=pair, daemon=True).start()


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while part := source.recv(1 << 16):
            sink.sendall(part)
    # Both ends go, since neither side of a call can do without the other.
    for end in (source, sink):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def _main(address: str, target: str) -> None:
    try:
        server = listen(address)
    except OSError as error:
        sys.exit(error.strerror or str(error))
    threading.Thread(target=accept, args=(server, target), daemon=True).start()
    os.write(1, READY)
    while os.read(0, 1):
        pass
    os._exit(0)


if __name__ == "__main__":
    _main(*sys.argv[1:])
