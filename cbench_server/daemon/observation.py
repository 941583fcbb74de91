"""Observation of a daemon: its meters, and the page on which they are read."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

from cbench_server.daemon.settings import Settings
from cbench_server.rpc.certificates import CannotListen, Certificates
from cbench_server.rpc.roles import with_included
from cbench_server.rpc.server import ServerSecurity, check_exposure
from cbench_server.telemetry.meters import Meters
from cbench_server.telemetry.page import Answer, Page

if TYPE_CHECKING:
    from cbench_server.rpc.attachments import Attachments
    from cbench_server.rpc.bench_service import BenchService
    from cbench_server.rpc.keyring import Keyring
    from cbench_server.runs.orchestrator import Orchestrator

_LAG_EVERY_S = 0.25
_READ = "read"
# What runs have under way, by its name in Load: the meter, and what it is.
_LOADS = {
    "calls": ("calls_in_flight", "Calls of systems that are not answered yet."),
    "slots": ("call_slots", "Calls of systems that may be in flight now."),
    "rows_unstored": ("rows_unstored", "Rows begun that are not stored yet."),
    "held_bytes": ("held_bytes", "Bytes of examples and answers that runs hold in memory."),
    "held_bytes_limit": ("held_bytes_limit", "Bytes that runs hold at most."),
    "budget_usd": ("budget_usd", "US dollars that the runs at work may spend."),
    "budget_spent_usd": ("budget_spent_usd", "US dollars of those budgets that are spent."),
}


@asynccontextmanager
async def observed(
    meters: Meters,
    settings: Settings,
    security: ServerSecurity,
    keyring: "Keyring",
    orchestrator: "Orchestrator",
    service: "BenchService",
    attachments: "Attachments",
    store: Path | None,
    queued_bytes: Callable[[], float],
) -> AsyncIterator[str]:
    """Serve the page while the context lasts; yield where."""
    turns = orchestrator.turns
    meters.gauge("runs_here", "Runs taken on, with those queued.", lambda: turns.taken)
    meters.gauge("runs_queued", "Runs that wait for their turn.", lambda: turns.queued)
    meters.gauge("run_slots", "Runs that may be worked on at once.", lambda: settings.max_runs)
    meters.gauge("watchers", "Streams of events that are followed.", lambda: service.watchers)
    meters.gauge("attachments", "Processes attached.", lambda: len(attachments.all))
    if store is not None:
        wal = store.with_name(f"{store.name}-wal")
        meters.gauge("store_bytes", "Size of the store's file.", partial(_size, store))
        meters.gauge("store_wal_bytes", "Size of its write-ahead log.", partial(_size, wal))
    meters.gauge("store_queue_bytes", "Bytes that wait to be written.", queued_bytes)
    for name, (meter, text) in _LOADS.items():
        meters.gauge(meter, text, partial(_loaded, orchestrator, name))
    check_exposure(settings.metrics, security, has_tokens=keyring.is_locked)

    def may_read(authorization: str) -> bool:
        if not keyring.is_locked:
            return True
        grant = keyring.find([("authorization", authorization)], None)
        return grant is not None and _READ in with_included(grant.roles)

    def ready() -> Answer:
        if orchestrator.is_draining:
            return HTTPStatus.SERVICE_UNAVAILABLE, b"shutting down\n"
        return HTTPStatus.OK, b"ready\n"

    page = Page(
        {
            "/metrics": lambda: (HTTPStatus.OK, meters.text()),
            "/livez": lambda: (HTTPStatus.OK, b"alive\n"),
            "/readyz": ready,
        },
        ("/livez", "/readyz"),
        may_read,
    )
    lag = asyncio.create_task(_measure_lag(meters.loop_lag.observe))
    try:
        yield await _listen(page, settings.metrics, security)
    finally:
        lag.cancel()
        await page.stop()


async def _listen(page: Page, where: str, security: ServerSecurity) -> str:
    host, _, port = where.rpartition(":")
    try:
        return await page.start(host.strip("[]"), int(port), _tls(security))
    except (OSError, ValueError) as error:
        raise CannotListen(
            f"metrics cannot be served at {where}: {error}. Give host:port, such as 127.0.0.1:9464."
        ) from error


def _tls(security: ServerSecurity) -> ssl.SSLContext | None:
    if not security.cert:
        return None
    return Certificates(security.cert, security.key, security.client_ca).context()


async def _measure_lag(observe: Callable[[float], None]) -> None:
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + _LAG_EVERY_S
        await asyncio.sleep(_LAG_EVERY_S)
        observe(max(0.0, loop.time() - due))


def _loaded(orchestrator: "Orchestrator", name: str) -> float:
    return float(asdict(orchestrator.load)[name])


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
