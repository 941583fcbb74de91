"""A daemon elsewhere, as `cbench doctor --server` finds it: reached, trusted and ready."""

import asyncio
import socket
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cbench_server import __version__
from cbench_server.cli.exits import DAEMON_ADVICE
from cbench_server.cli.findings import Finding

if TYPE_CHECKING:
    from cbench_client import BenchClient, Tls

_PATIENCE_S = 5.0
_SLOW_S = 0.5
_ASKED = 5
_MAKE_ONE = "Where the daemon is, cbench tokens create makes one."


def remote_findings(server: str, tls: "Tls | None", token: str) -> Iterator[Finding]:
    """Check a daemon from here; what cannot be reached ends the checks."""
    from cbench_client import BenchClient, ClientError

    reached = _reach(server)
    yield reached
    if reached.status == "fail":
        return
    try:
        with BenchClient(server, tls=tls, token=token or None, timeout=_PATIENCE_S) as client:
            yield from _ask(client)
            yield _ready(server, tls, token)
    except ClientError as error:
        yield Finding("fail", "daemon", error.problem, _way_out(error))


def _reach(server: str) -> Finding:
    """Connect to the port, and say what the name stands for."""
    if server.startswith("unix:"):
        return Finding("ok", "address", server)
    host, _, port = server.rpartition(":")
    host = host.strip("[]")
    try:
        found = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)
    except (OSError, ValueError, OverflowError, UnicodeError) as error:
        return Finding(
            "fail",
            "address",
            f"{server} cannot be looked up: {error}",
            "Give --server HOST:PORT with a name that this machine can look up.",
        )
    begun = time.monotonic()
    try:
        socket.create_connection((host, int(port)), timeout=_PATIENCE_S).close()
    except OSError as error:
        return Finding(
            "fail",
            "address",
            f"nobody takes connections at {server}: {error}",
            "Start the daemon, check the port, or let it through the firewall.",
        )
    addresses = ", ".join(sorted({each[4][0] for each in found if isinstance(each[4][0], str)}))
    took = time.monotonic() - begun
    return Finding("ok", "address", f"{server} is {addresses}; connected in {took * 1000:.0f} ms")


def _ask(client: "BenchClient") -> Iterator[Finding]:
    # The first call pays for the connection; the others say how far away the daemon is.
    components = client.components()
    times = sorted(_timed(client) for _ in range(_ASKED))
    version = components.server_version
    if version == __version__:
        yield Finding("ok", "version", f"{version}, as here")
    else:
        fix = "Both understand each other (docs/compatibility.md); upgrade the older one for all."
        yield Finding("warn", "version", f"{version} there, {__version__} here", fix)
    median = times[len(times) // 2]
    yield Finding(
        "ok" if median < _SLOW_S else "warn",
        "answers",
        f"within {median * 1000:.1f} ms (median of {_ASKED})",
        "" if median < _SLOW_S else "It is far away or busy; its own metrics say which.",
    )
    yield from _allowed(client, components)


def _timed(client: "BenchClient") -> float:
    begun = time.monotonic()
    client.components()
    return time.monotonic() - begun


def _ready(server: str, tls: "Tls | None", token: str) -> Finding:
    """Ask for health as supervisors do."""
    from cbench_client.remote.unary import UnaryConnection

    async def ask() -> bool:
        connection = UnaryConnection(server, "cbench.v1.Bench", tls=tls, token=token or None)
        try:
            return await connection.wait_connected(_PATIENCE_S)
        finally:
            await connection.close()

    if asyncio.run(ask()):
        return Finding("ok", "health", "it takes work")
    fix = "It is shutting down; wait until it is back."
    return Finding("fail", "health", "it takes no new work", fix)


def _allowed(client: "BenchClient", components: Any) -> Iterator[Finding]:
    """See what the token opens: reading runs is asked for, since nothing changes by it."""
    from cbench_client import ClientError

    offered = {"datasets": components.datasets, "evaluators": components.evaluators}
    said = ", ".join(f"{len(each)} {what}" for what, each in offered.items())
    yield Finding("ok", "components", f"{said}, {len(components.systems)} systems")
    try:
        newest = next(client.list(), None)
    except ClientError as error:
        yield Finding("warn", "token", f"it may not read runs: {error.problem}", _way_out(error))
        return
    runs = f"the newest run is {newest.run_id}" if newest else "there are no runs yet"
    yield Finding("ok", "token", f"runs can be read; {runs}")


def _way_out(error: Any) -> str:
    way_out = DAEMON_ADVICE.get(error.advice, "")
    return f"{way_out} {_MAKE_ONE}" if error.advice == "PRESENT_TOKEN" else way_out
