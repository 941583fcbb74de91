"""Stands in here for a program on a node: `python -m cbench_server.cluster.stand_in SOCKET WANTED`.

It prints what that program prints, says where it can be reached from this machine, ends as it
ends, and passes SIGTERM on. So whoever launches systems need not know where they run. There is
one of these per replica, so it imports little.
"""

import base64
import json
import os
import signal
import socket
import sys
import threading
from typing import Any

from cbench_server.cluster import relay

LOST = 128 + signal.SIGKILL
"""The code of a program that was lost with its place: it was killed with it."""


def _main(path: str, wanted: str) -> None:
    driver = socket.socket(socket.AF_UNIX)
    try:
        driver.connect(path)
        driver.sendall(wanted.encode() + b"\n")
    except OSError as error:
        _leave(f"the Ray driver is gone: {error.strerror}")
    # Written from the handler, which runs between two reads.
    signal.signal(signal.SIGTERM, lambda *_: driver.sendall(b"stop\n"))
    for line in driver.makefile("rb"):
        _take(json.loads(line))
    _leave("the Ray driver is gone")


def _take(said: dict[str, Any]) -> None:
    kind = said["type"]
    if kind == "Printed":
        data = base64.b64decode(said["data"])
        while data:
            data = data[os.write(said["stream"], data) :]
    elif kind == "Listens":
        target = said["target"]
        if not said["is_here"]:
            target = _reachable(target)
        print(f"cbench|1|tcp|{target}", flush=True)
    else:
        _leave(said["why"], said["code"])


def _reachable(target: str) -> str:
    """Listen here for a program on another node, whose address may change with its next life."""
    server = relay.listen("127.0.0.1:0")
    threading.Thread(target=relay.accept, args=(server, target), daemon=True).start()
    return f"127.0.0.1:{server.getsockname()[1]}"


def _leave(why: str, code: int = LOST) -> None:
    if why:
        print(why, file=sys.stderr, flush=True)
    os._exit(code)


if __name__ == "__main__":
    _main(*sys.argv[1:])
