"""`cbench store`: copy runs from one store into another, or check all of a store."""

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from cbench_server.cli import options
from cbench_server.cli.exits import FAILED, OK, UsageError, complain
from cbench_server.cli.findings import store_findings, tell_findings
from cbench_server.cli.local_store import settings_of
from cbench_server.cli.outcome import add_json, inform
from cbench_server.cli.screen import print_json

if TYPE_CHECKING:
    from cbench_server.storage.sql_store import SqlStore
    from cbench_server.storage.store_copy import Copied

_STORE = (
    "a directory with a cbench.db, such as a CBENCH_HOME, or postgresql://USER@HOST:PORT/NAME "
    "(its password from PGPASSWORD or ~/.pgpass)"
)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the actions of `cbench store`."""
    actions = parser.add_subparsers(metavar="ACTION", dest="action")
    copy = options.add_action(
        actions, "copy", copy_runs, "Copy finished runs and uploads into another store, verified"
    )
    copy.add_argument("source", metavar="FROM", help=_STORE)
    copy.add_argument("target", metavar="TO", help="the same; an empty one is made a store")
    copy.add_argument(
        "--run",
        dest="runs",
        metavar="RUN",
        help="only the run of this id; repeatable (default: all runs, and uploads)",
        **options.REPEATABLE,
    )
    add_json(copy)
    check = options.add_action(
        actions, "check", check_store, "Read all of a store, and say what is damaged"
    )
    check.add_argument(
        "store",
        metavar="STORE",
        nargs="?",
        help=f"{_STORE}; by default that of CBENCH_STORE or CBENCH_HOME",
    )
    options.add_output(check)


def check_store(args: argparse.Namespace) -> int:
    """Read every row; damage makes the exit code 1."""
    home, address = _place(args.store) if args.store else _own_place()
    if not address and not (home / "cbench.db").is_file():
        raise UsageError(f"there is no store in {home}.")
    return tell_findings(store_findings(home, address), args.output)


def copy_runs(args: argparse.Namespace) -> int:
    """Copy what is not there yet; what is left out is said and makes the exit code 1."""
    import asyncio

    source, target = _place(args.source), _place(args.target)
    if not source[1] and not (source[0] / "cbench.db").is_file():
        raise UsageError(f"there is no store in {source[0]}.")
    if source == target:
        raise UsageError("both are the same store.")
    runs, uploads = asyncio.run(_copied(args, source, target))
    left = [each for each in [*runs, *uploads] if each.outcome == "left out"]
    if args.output == "json":
        print_json(
            {
                "runs": [asdict(each) for each in runs],
                "uploads": [asdict(each) for each in uploads],
            }
        )
    else:
        inform(args, f"runs: {_counted(runs)}; uploads: {_counted(uploads)}")
    return FAILED if left else OK


def _counted(found: "list[Copied]") -> str:
    outcomes = [each.outcome for each in found]
    parts = [f"{outcomes.count(each):,} {each}" for each in dict.fromkeys(outcomes)]
    return ", ".join(parts) or "none"


async def _copied(
    args: argparse.Namespace, source: tuple[Path, str], target: tuple[Path, str]
) -> "tuple[list[Copied], list[Copied]]":
    import asyncio

    from cbench_server.storage.store_copy import copy_store, copy_uploads

    runs, uploads = [], []
    async with _opened(source) as here, _opened(target) as there:
        if there.unwritable:
            raise UsageError(there.unwritable)
        if not args.runs:
            sent, taken = here.uploads(source[0], 0, 0), there.uploads(target[0], 0, 0)
            try:
                uploads = await asyncio.to_thread(lambda: list(copy_uploads(sent, taken)))
            finally:
                sent.close()
                taken.close()
            for each in uploads:
                _say(args, "upload", each)
        async for each in copy_store(here, there, args.runs):
            runs.append(each)
            _say(args, "run", each)
    return runs, uploads


def _say(args: argparse.Namespace, what: str, copied: "Copied") -> None:
    if copied.outcome == "left out":
        complain(f"left out {what} {copied.name}: {copied.why}")
    elif args.output != "json":
        rows = f" ({copied.rows:,} rows, verified)" if what == "run" else ""
        inform(args, f"{what} {copied.name}: {copied.outcome}{rows}")


@asynccontextmanager
async def _opened(place: tuple[Path, str]) -> "AsyncIterator[SqlStore]":
    from cbench_server.storage.opening import open_store

    store = open_store(*place)
    try:
        yield store
    finally:
        await store.close()


def _own_place() -> tuple[Path, str]:
    from cbench_server.daemon.settings import data_home

    settings = settings_of()
    return data_home(settings.home), settings.store


def _place(text: str) -> tuple[Path, str]:
    """Return the home and the address that a store is told by; one of them says where it is."""
    from cbench_server.daemon.settings import data_home
    from cbench_server.storage.opening import is_address

    if is_address(text):
        # Uploads on their way lie there for a moment.
        return data_home(settings_of().home), text
    path = Path(text)
    return (path.parent if path.name == "cbench.db" else path).resolve(), ""
