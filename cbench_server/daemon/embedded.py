"""A daemon inside another command, in a thread of its process."""

import asyncio
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from cbench_server.daemon.assembly import running_daemon
from cbench_server.daemon.settings import load_settings


@contextmanager
def embedded(
    imports: Sequence[str] = (),
    home: str = "",
    data_dir: str | None = None,
    sandbox: str | None = None,
    evaluates: bool = False,
) -> Iterator[str]:
    """Run a daemon in a thread of this process, on the same store; yield its target.

    It listens on a socket in a private folder, so no other user can reach it.
    `evaluates` says that a run is about to begin, and has what every run needs
    loaded meanwhile.
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
        settings = replace(settings, tls_key="", tls_client_ca="", drain_seconds=2.0)
        thread = threading.Thread(target=run, name="cbench-embedded", daemon=True)
        thread.start()
        if evaluates:
            # Waited for when the process ends: native code must not be cut off.
            threading.Thread(target=_warm_up, name="cbench-warm-up").start()
        started.wait()
        if "error" in outcome:
            raise outcome["error"]
        try:
            yield target
        finally:
            outcome["loop"].call_soon_threadsafe(outcome["stop"].set)
            thread.join(timeout=30)


def _warm_up() -> None:
    """Load what every run needs and takes long, while a system starts or answers.

    What goes wrong here is reported where it is needed, and loaded again.
    """
    with suppress(Exception):
        from cbench_server.tokens import get_tokenizer

        get_tokenizer()
        import cbench_server.metrics.stats.frame  # noqa: F401 - for the summary, with numpy
