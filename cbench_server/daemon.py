"""`cbench-server`: builds store, registry, orchestrator and server, and connects them."""

import argparse
import asyncio
import gc
import importlib
import logging
import os
import signal
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from cbench_server.config import Settings, data_home, load_settings
from cbench_server.errors import CbenchError, InvalidInput
from cbench_server.version import __version__

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
    from cbench_server.credentials import Credentials
    from cbench_server.evaluator_making import EvaluatorMaker
    from cbench_server.orchestrator import Limits, Orchestrator
    from cbench_server.registry import registry
    from cbench_server.rpc.attachments import Attachments
    from cbench_server.rpc.bench_service import BenchService
    from cbench_server.rpc.evaluator_service import EvaluatorService
    from cbench_server.rpc.finding import Finder
    from cbench_server.rpc.gateway_service import GatewayService
    from cbench_server.rpc.server import RpcServer, ServerSecurity
    from cbench_server.scoring import Scoring
    from cbench_server.storage.sqlite import SqliteStore
    from cbench_server.storage.summary_program import summarize_apart
    from cbench_server.storage.uploads import UploadStore
    from cbench_server.workers import WorkerPool

    # The SQLite driver drops the GIL for every row it reads; waiting five
    # milliseconds to get it back each time would make reading ten times dearer.
    sys.setswitchinterval(0.001)
    _import_modules(settings.imports)
    registry.data_dir = settings.data_dir
    home = data_home(settings.home)
    store = SqliteStore.open(home)
    executor = ThreadPoolExecutor(64, thread_name_prefix="system")
    scoring = Scoring(WorkerPool(size=settings.workers))
    try:
        uploads = UploadStore(home)
        attachments = Attachments()
        credentials = Credentials(
            settings.credential_table(), "OPENAI_API_KEY" if own_runs_only else ""
        )
        maker = EvaluatorMaker(registry, credentials, settings.sandbox)
        finder = Finder(registry, attachments, credentials, maker, executor, settings.model)
        orchestrator = Orchestrator(
            store,
            registry,
            scoring,
            finder,
            finder,
            uploads,
            Limits(settings.max_runs, settings.max_queued),
            summarize_apart=None
            if own_runs_only
            else partial(summarize_apart, home, settings.imports),
        )
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
        executor.shutdown(wait=False, cancel_futures=True)


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


# The command.


def main(argv: Sequence[str] | None = None) -> int:
    """Run `cbench-server` until a signal ends it; return the exit code."""
    flags = vars(_parser().parse_args(argv))
    try:
        settings = load_settings(flags)
        from cbench_server.logs import set_up_logs

        set_up_logs(settings.log_level, settings.log_format)
        return asyncio.run(_serve(settings))
    except CbenchError as error:
        print(f"cbench-server: {error}", file=sys.stderr)
        return 1


async def _serve(settings: Settings) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def on_signal(number: int) -> None:
        if stop.is_set():
            log.warning("second signal: stopping at once")
            logging.shutdown()
            os._exit(128 + number)
        log.info("draining", extra={"signal": signal.Signals(number).name})
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal, number)
    async with running_daemon(settings) as daemon:
        # Rows make much garbage and few cycles: what was imported need not be
        # searched for any, and the rest not every 700 objects.
        gc.freeze()
        gc.set_threshold(50_000, 20, 50)
        log.info(
            "serving",
            extra={
                "address": daemon.address,
                "version": __version__,
                "home": str(data_home(settings.home)),
                "pid": os.getpid(),
            },
        )
        if settings.address.endswith(":0") or os.environ.get("CBENCH_HANDSHAKE"):
            print(f"cbench|1|tcp|{daemon.address}", flush=True)
        await stop.wait()
    log.info("stopped")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cbench-server",
        description="Serve evaluations over gRPC. Every flag is also a CBENCH_ variable and a key "
        "of the TOML file; flags win over variables, variables over the file.",
    )
    parser.add_argument("--version", action="version", version=f"cbench-server {__version__}")
    parser.add_argument("--config", help="TOML file with settings (or CBENCH_CONFIG)")
    for each in fields(Settings):
        if each.name == "credentials":
            continue
        flag = "--import" if each.name == "imports" else f"--{each.name.replace('_', '-')}"
        options: dict[str, Any] = {
            "dest": each.name,
            "default": None,
            "help": each.metadata["help"],
        }
        if each.type is bool or each.default is False:
            options["action"] = "store_true"
        elif each.name == "imports":
            options.update(action="append", metavar="MODULE")
        else:
            options["metavar"] = each.name.rpartition("_")[2].upper()
        parser.add_argument(flag, **options)
    return parser


# A daemon inside another command.


@contextmanager
def embedded(
    imports: Sequence[str] = (),
    home: str = "",
    data_dir: str | None = None,
    sandbox: str | None = None,
) -> Iterator[str]:
    """Run a daemon in a thread of this process, on the same store; yield its target.

    It listens on a socket in a private folder, so nobody else can reach it.
    """
    started = threading.Event()
    outcome: dict[str, Any] = {}

    async def live() -> None:
        stop = asyncio.Event()
        outcome["stop"] = stop
        outcome["loop"] = asyncio.get_running_loop()
        async with running_daemon(settings, own_runs_only=True):
            started.set()
            await stop.wait()

    def run() -> None:
        try:
            asyncio.run(live())
        except BaseException as error:
            outcome["error"] = error
        finally:
            started.set()

    with tempfile.TemporaryDirectory(prefix="cbench-") as folder:
        target = f"unix:{Path(folder) / 'cbench.sock'}"
        flags = {"imports": list(imports) or None, "data_dir": data_dir, "sandbox": sandbox}
        settings = replace(load_settings(flags), address=target)
        settings = replace(
            settings, home=home or settings.home, token="", token_file="", tls_cert=""
        )
        settings = replace(settings, tls_key="", tls_client_ca="", drain_seconds=5.0)
        thread = threading.Thread(target=run, name="cbench-embedded", daemon=True)
        thread.start()
        started.wait()
        if "error" in outcome:
            raise outcome["error"]
        try:
            yield target
        finally:
            outcome["loop"].call_soon_threadsafe(outcome["stop"].set)
            thread.join(timeout=30)
