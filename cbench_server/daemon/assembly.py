"""The parts of a daemon: store, registry, orchestrator and server, built and connected."""

import asyncio
import importlib
import logging
import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from cbench_server.daemon.settings import Settings, data_home
from cbench_server.errors import InvalidInput

log = logging.getLogger("cbench_server.daemon")

_RETENTION_EVERY_S = 3600.0


@dataclass
class Daemon:
    """A daemon that is listening."""

    address: str
    orchestrator: Any
    server: Any
    attachments: Any
    settings: Settings

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
    from cbench_server.rpc.evaluator_factory import EvaluatorMaker
    from cbench_server.rpc.evaluator_service import EvaluatorService
    from cbench_server.rpc.finder import Finder
    from cbench_server.rpc.gateway_service import GatewayService
    from cbench_server.rpc.server import RpcServer, ServerSecurity
    from cbench_server.runs.live_run import Services
    from cbench_server.runs.orchestrator import Limits, Orchestrator
    from cbench_server.scoring.placement import Scoring
    from cbench_server.scoring.workers import WorkerPool
    from cbench_server.storage.judge_checks import JudgeCheckStore
    from cbench_server.storage.sqlite import SqliteStore
    from cbench_server.storage.uploads import UploadStore

    # The SQLite driver drops the GIL for every row it reads; waiting five
    # milliseconds to get it back each time would make reading cost ten times as much.
    sys.setswitchinterval(0.001)
    _import_modules(settings.imports)
    registry.data_dir = settings.data_dir
    home = data_home(settings.home)
    store = SqliteStore.open(home)
    scoring = Scoring(WorkerPool(size=settings.workers))
    try:
        uploads = UploadStore(home)
        attachments = Attachments()
        credentials = Credentials(
            settings.credential_table(), "OPENAI_API_KEY" if own_runs_only else ""
        )
        maker = EvaluatorMaker(registry, credentials, settings.sandbox)
        finder = Finder(registry, attachments, credentials, maker, settings.model)
        services = Services(
            store,
            registry,
            scoring,
            finder,
            uploads,
            time.time,
            JudgeCheckStore(home),
            None if own_runs_only else partial(summarize_apart, home, settings.imports),
        )
        orchestrator = Orchestrator(services, Limits(settings.max_runs, settings.max_queued))
        server = RpcServer(
            BenchService(orchestrator, registry, attachments, uploads.writer),
            EvaluatorService(registry, scoring, maker),
            GatewayService(attachments),
            ServerSecurity(
                settings.tls_cert,
                settings.tls_key,
                settings.tls_client_ca,
                settings.tokens(),
                settings.unsafe_allow_remote,
            ),
            max_message_bytes=settings.max_message_mb * 1024 * 1024,
            max_calls=settings.max_calls,
        )
        address = await server.start(settings.address)
        daemon = Daemon(address, orchestrator, server, attachments, settings)
        chores = []
        if not own_runs_only:
            chores.append(asyncio.create_task(_recover(orchestrator)))
            if settings.retention_days:
                chores.append(asyncio.create_task(_retain(store, settings.retention_days)))
        try:
            yield daemon
        finally:
            for chore in chores:
                chore.cancel()
            await daemon.drain()
            await server.stop(2.0)
    finally:
        await scoring.close()
        await store.close()


def _import_modules(names: Sequence[str]) -> None:
    sys.path.insert(0, os.getcwd())
    for name in names:
        try:
            importlib.import_module(name)
        except Exception as error:
            raise InvalidInput(
                f'cannot import "{name}": {type(error).__name__}: {error}'
            ) from error


async def _recover(orchestrator: Any) -> None:
    resumed = await orchestrator.recover()
    if resumed:
        log.info("resumed unfinished runs", extra={"runs": resumed})


async def _retain(store: Any, days: float) -> None:
    while True:
        deleted = await store.delete_runs_older_than(days * 86400)
        if deleted:
            log.info("deleted old runs", extra={"runs": deleted})
        await asyncio.sleep(_RETENTION_EVERY_S)
