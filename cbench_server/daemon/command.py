"""`cbench-server`: flags in, a daemon that serves until a signal ends it."""

import argparse
import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from cbench_server import __version__
from cbench_server.daemon.descriptors import raise_descriptors
from cbench_server.daemon.settings import Settings, data_home, load_settings
from cbench_server.durable import failpoints
from cbench_server.errors import CbenchError

log = logging.getLogger("cbench_server.daemon")


def main(argv: Sequence[str] | None = None) -> int:
    """Run `cbench-server` until a signal ends it; return the exit code."""
    failpoints.arm()
    flags = vars(_parser().parse_args(argv))
    try:
        settings = load_settings(flags)
    except CbenchError as error:
        print(f"cbench-server: {error}", file=sys.stderr)
        return 1
    from cbench_server.daemon.logs import end_logs, set_up_logs

    set_up_logs(settings.log_level, settings.log_format)
    raise_descriptors()
    try:
        return asyncio.run(_serve(settings))
    except CbenchError as error:
        end_logs()
        # It never served, so this is for whoever has started it by hand.
        print(f"cbench-server: {error}", file=sys.stderr)
        return 1
    finally:
        end_logs()


async def _serve(settings: Settings) -> int:
    from cbench_server.daemon.assembly import running_daemon

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
                **({"metrics": daemon.metrics} if daemon.metrics else {}),
                "version": __version__,
                "home": str(data_home(settings.home)),
                **({"store": daemon.store} if settings.store else {}),
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
        if each.name in ("credentials", "prices"):
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
