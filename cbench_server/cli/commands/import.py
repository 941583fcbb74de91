"""`cbench import`: read a run from a file that `cbench export --format run` wrote."""  # noqa: N999 - the command has this name

import argparse
import time
from pathlib import Path

from cbench_server.cli import options
from cbench_server.cli.connect import connect, server_of
from cbench_server.cli.exits import OK
from cbench_server.cli.local_store import in_store
from cbench_server.cli.outcome import add_json, inform
from cbench_server.cli.screen import print_json

_PART_BYTES = 1024 * 1024


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `cbench import`."""
    parser.set_defaults(handler=import_file)
    parser.add_argument(
        "file", metavar="FILE", help="what `cbench export --format run` or `runs salvage` wrote"
    )
    parser.add_argument(
        "--new-id", action="store_true", help="give the run a new id; by default it keeps its own"
    )
    add_json(parser)
    options.add_server_flags(parser)


def import_file(args: argparse.Namespace) -> int:
    """Store the run, and print its id."""
    run_id, is_new = _sent(args) if server_of(args) else _stored(args)
    if not is_new:
        inform(args, f"{run_id} is stored already")
    if args.output == "json":
        print_json({"run_id": run_id, "is_new": is_new})
    else:
        print(run_id)
    return OK


def _sent(args: argparse.Namespace) -> tuple[str, bool]:
    """Have a daemon elsewhere store it."""
    with Path(args.file).open("rb") as file, connect(args) as client:
        parts = iter(lambda: file.read(_PART_BYTES), b"")
        run, is_new = client.import_run(parts, new_id=args.new_id)
    return run.run_id, is_new


def _stored(args: argparse.Namespace) -> tuple[str, bool]:
    from cbench_server.runs.new_runs import new_run_id
    from cbench_server.storage.run_files import import_run

    new_id = new_run_id(time.time()) if args.new_id else ""
    run, is_new = in_store(args, lambda store: import_run(store, Path(args.file), new_id=new_id))
    return run.run_id, is_new
