"""The store on this machine, for what works on its files and not through a daemon."""

import argparse
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from cbench_server.cli.connect import server_of
from cbench_server.cli.exits import UsageError

if TYPE_CHECKING:
    from cbench_server.daemon.settings import Settings
    from cbench_server.storage.sql_store import SqlStore

T = TypeVar("T")


def local_home(args: argparse.Namespace) -> Path:
    """Return where the runs are, or refuse if a daemon elsewhere is named."""
    from cbench_server.daemon.settings import data_home, load_settings

    if server := server_of(args):
        raise UsageError(
            f"this works on the files of a store, not through the daemon at {server}. Run it on "
            "that machine, with CBENCH_HOME set to the daemon's home and without --server."
        )
    return data_home(load_settings({}).home)


def in_store(args: argparse.Namespace, work: "Callable[[SqlStore], Awaitable[T]]") -> T:
    """Open the store, which a daemon may use meanwhile, and do some work with it."""
    import asyncio

    from cbench_server.storage.opening import open_store

    home, settings = local_home(args), settings_of()

    async def opened() -> T:
        store = open_store(home, settings.store, max_bytes=settings.max_store_mb << 20)
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(opened())


def settings_of() -> "Settings":
    """Return the settings that a daemon would have here."""
    from cbench_server.daemon.settings import load_settings

    return load_settings({})


async def named_run(store: "SqlStore", text: str) -> str:
    """Return the id of a run, damaged or not, given it, its beginning, or `last`."""
    from cbench_server.errors import UnknownRun

    found: list[str] = []
    before: str | None = None
    while True:
        page = await store.page_runs(limit=200, before=before)
        ids = [run.run_id for run in page.runs]
        if text in ids or (text == "last" and ids):
            return text if text in ids else ids[0]
        found += [each for each in ids if each.startswith(text)]
        before = page.next_before
        if before is None:
            break
    if len(found) > 1:
        raise UsageError(f'{len(found)} runs begin with "{text}": {", ".join(found[:5])}.')
    if not found:
        raise UnknownRun(text)
    return found[0]
