"""The parts of a daemon: store, registry, orchestrator and server, built and connected."""

import asyncio
import logging
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from cbench_server import __version__
from cbench_server.daemon.descriptors import connections_within
from cbench_server.daemon.housekeeping import clean, keep_house
from cbench_server.daemon.imports import import_modules
from cbench_server.daemon.settings import BadSetting, Settings, data_home
from cbench_server.events import StoredEvent
from cbench_server.limits import MAX_IMPORTED_BYTES

if TYPE_CHECKING:
    from cbench_server.models.tracing import Tracer
    from cbench_server.registry import Registry
    from cbench_server.runs.store import Committed
    from cbench_server.scoring.workers import Workers
    from cbench_server.telemetry.meters import Meters

log = logging.getLogger("cbench_server.daemon")

MB = 1024 * 1024


@dataclass
class Daemon:
    """A daemon that is listening."""

    address: str
    orchestrator: Any
    server: Any
    attachments: Any
    settings: Settings
    store: str = ""
    """How the store is called; it never has a password in it."""
    metrics: str = ""
    """Where metrics are read; empty means nowhere."""

    async def drain(self) -> None:
        """Hand back what is not done: no more runs, calls in flight finished, streams ended."""
        await self.server.refuse_new_work()
        self.attachments.drain("the daemon is shutting down")
        await self.orchestrator.drain(self.settings.drain_seconds)


@asynccontextmanager
async def running_daemon(
    settings: Settings, *, own_runs_only: bool = False
) -> AsyncIterator[Daemon]:
    """Start a daemon, and stop it when the context ends.

    `own_runs_only` is for one that lives inside another command: it leaves
    unfinished runs to `cbench-server`, and may use the user's own API key.
    """
    # Imported here so that a bad flag is reported before gRPC and SQL are loaded.
    from cbench_server.daemon.summary_program import summarize_apart
    from cbench_server.registry import registry
    from cbench_server.rpc.attachments import Attachments
    from cbench_server.rpc.bench_service import BenchService
    from cbench_server.rpc.credentials import Credentials
    from cbench_server.rpc.dialled_addresses import set_dialled
    from cbench_server.rpc.evaluator_factory import EvaluatorMaker
    from cbench_server.rpc.evaluator_service import EvaluatorService
    from cbench_server.rpc.finder import Finder
    from cbench_server.rpc.gateway_service import GatewayService
    from cbench_server.rpc.holdings import Holdings
    from cbench_server.rpc.server import RpcServer, ServerSecurity
    from cbench_server.runs.attending import attend
    from cbench_server.runs.orchestrator import Orchestrator
    from cbench_server.runs.run_turns import Limits
    from cbench_server.runs.services import Services
    from cbench_server.scoring.placement import Scoring
    from cbench_server.storage.import_room import Room
    from cbench_server.storage.import_spool import ImportSpools
    from cbench_server.storage.judge_checks import JudgeCheckStore
    from cbench_server.storage.opening import open_store
    from cbench_server.storage.run_files import StoredRunFiles
    from cbench_server.telemetry.traces import tracer_from_environment

    # The SQLite driver drops the GIL for every row it reads; waiting five
    # milliseconds to get it back each time would make reading cost ten times as much.
    sys.setswitchinterval(0.001)
    import_modules(settings.imports)
    registry.data_dir = settings.data_dir
    _register_data(settings, registry)
    set_dialled(settings.dial_allow, settings.dial_deny, settings.address)
    home = data_home(settings.home)
    workers = _workers(settings)
    store = open_store(
        home,
        settings.store,
        max_bytes=settings.max_store_mb * MB,
        lease_seconds=settings.lease_seconds,
    )
    if store.unwritable and not own_runs_only:
        log.warning("%s Until then runs are read, and none is taken on.", store.unwritable)
    scoring = Scoring(workers)
    tracer: Tracer | None = tracer_from_environment(__version__)
    try:
        await workers.start()
        uploads = store.uploads(home, settings.max_upload_mb * MB, settings.max_uploads_mb * MB)
        attachments = Attachments()
        credentials = Credentials(
            settings.credential_table(), "OPENAI_API_KEY" if own_runs_only else ""
        )
        maker = EvaluatorMaker(registry, credentials, settings.sandbox)
        finder = Finder(registry, attachments, credentials, maker, settings.model)
        meters = _new_meters() if settings.metrics and not own_runs_only else None
        holdings = Holdings(registry, attachments, credentials, uploads)
        # One inside another command works on its own runs, at once, and on no others.
        is_shared = store.is_shared and not own_runs_only
        services = Services(
            store,
            registry,
            scoring,
            finder,
            uploads,
            time.time,
            JudgeCheckStore(home),
            prices=settings.price_table(),
            committed=None if own_runs_only else _told_of_commits(meters),
            tracer=tracer,
            missing=holdings.missing if is_shared else None,
            summarize_apart=None
            if own_runs_only
            else partial(summarize_apart, home, settings.store, settings.imports),
        )
        keyring = settings.keyring()
        limits = Limits(settings.max_runs, settings.max_queued, lambda: keyring.is_shared)
        orchestrator = Orchestrator(services, limits, is_shared=is_shared)
        max_message_bytes = settings.max_message_mb * MB
        bench = BenchService(
            orchestrator,
            registry,
            attachments,
            uploads.writer,
            StoredRunFiles(
                store,
                Room(max(MAX_IMPORTED_BYTES, settings.max_message_mb * MB)),
                ImportSpools(home, settings.max_store_mb * MB),
            ),
            partial(clean, store, uploads, home),
            max_message_bytes,
        )
        security = ServerSecurity(
            settings.tls_cert,
            settings.tls_key,
            settings.tls_client_ca,
            settings.unsafe_allow_remote,
        )
        server = RpcServer(
            bench,
            EvaluatorService(registry, scoring, maker),
            GatewayService(attachments),
            security,
            keyring,
            max_message_bytes=max_message_bytes,
            max_calls=settings.max_calls,
            max_connections=connections_within(settings.max_connections),
            served=meters.served if meters else None,
        )
        address = await server.start(settings.address)
        daemon = Daemon(address, orchestrator, server, attachments, settings, store.database.name)
        attending = attend(orchestrator, takes_runs=not own_runs_only, is_shared=is_shared)
        chores = [asyncio.create_task(attending, name="the care of runs")]
        if not own_runs_only:
            keeping = keep_house(store, uploads, home, settings)
            chores.append(asyncio.create_task(keeping, name="housekeeping"))
        for chore in chores:
            chore.add_done_callback(_log_end)
        try:
            async with AsyncExitStack() as stack:
                if meters is not None:
                    from cbench_server.daemon.observation import observed

                    daemon.metrics = await stack.enter_async_context(
                        observed(
                            meters,
                            settings,
                            security,
                            keyring,
                            orchestrator,
                            bench,
                            attachments,
                            None if settings.store else home / "cbench.db",
                            lambda: store.writer.unfinished_size,
                        )
                    )
                yield daemon
        finally:
            for chore in chores:
                chore.cancel()
            await daemon.drain()
            await server.stop(2.0)
    finally:
        await scoring.close()
        await store.close()
        if tracer is not None:
            await asyncio.to_thread(tracer.close)


def _log_end(chore: "asyncio.Task[None]") -> None:
    if not chore.cancelled():
        name, error = chore.get_name(), chore.exception()
        log.error("%s has ended before the daemon", name, exc_info=error)


def _workers(settings: Settings) -> "Workers":
    """Return where evaluators that run apart do so."""
    if settings.engine == "ray":
        # Imported only where it is asked for.
        from cbench_server.cluster.workers import ClusterWorkers

        return ClusterWorkers(settings.ray_address, settings.ray_workers, policy=settings.sandbox)
    from cbench_server.scoring.workers import WorkerPool

    return WorkerPool(size=settings.workers)


def _told_of_commits(meters: "Meters | None") -> "Committed":
    from cbench_server.telemetry.run_log import RunLog

    run_log = RunLog()
    if meters is None:
        return run_log.committed

    def committed(run_id: str, events: Sequence[StoredEvent], seconds: float) -> None:
        meters.committed(run_id, events, seconds)
        run_log.committed(run_id, events, seconds)

    return committed


def _register_data(settings: Settings, registry: "Registry") -> None:
    """Make the data that the configuration names known as datasets."""
    for record in settings.named_data():
        if record.name in registry.list("dataset") and not registry.dataset(record.name).provenance:
            raise BadSetting(f"[data.{record.name}]: there is a dataset of that name already.")
        registry.register("dataset", record.name, record)


def _new_meters() -> "Meters":
    # Imported only where it is asked for.
    from cbench_server.telemetry.meters import Meters

    return Meters()
