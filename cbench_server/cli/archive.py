"""`cbench runs archive`: finished runs move out of the store into files."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from cbench_server.cli import options
from cbench_server.cli.exits import FAILED, OK, UsageError, complain
from cbench_server.cli.files import size_text
from cbench_server.cli.local_store import in_store, named_run
from cbench_server.cli.outcome import add_json, inform
from cbench_server.cli.values import age

if TYPE_CHECKING:
    from cbench_server.spec import Run
    from cbench_server.storage.run_archive import Archived
    from cbench_server.storage.sql_store import SqlStore


def add_archive(actions: options.Actions) -> None:
    """Add `archive` to `cbench runs`."""
    archive = options.add_action(
        actions, "archive", archive_runs, "Move finished runs into files that cbench import reads"
    )
    archive.add_argument("runs", metavar="RUN", nargs="*", help=options.RUN_HELP)
    archive.add_argument(
        "--to",
        metavar="FOLDER",
        required=True,
        help="where to write RUN.run.gz and its summary RUN.json; made if it is not there",
    )
    archive.add_argument(
        "--older-than",
        metavar="AGE",
        type=age,
        help="runs that ended longer ago and are not pinned, such as 30d",
    )
    add_json(archive)


def archive_runs(args: argparse.Namespace) -> int:
    """Archive each run; one that cannot be harms none, and makes the exit code 1."""
    from cbench_server.cli.screen import print_json

    if bool(args.runs) == (args.older_than is not None):
        raise UsageError("say which runs to archive: name them, or pass --older-than AGE.")
    folder = Path(args.to)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write into {folder}: {error.strerror}.") from error
    done, failed = in_store(args, lambda store: _archive_all(args, store, folder))
    if args.output == "json":
        print_json(
            {
                "archived": [
                    {
                        "run_id": each.run_id,
                        "file": str(each.file),
                        "bytes": each.size,
                        "rows": each.rows,
                    }
                    for each in done
                ],
                "left": failed,
            }
        )
    elif not done and not failed:
        inform(args, "There are no such runs.")
    return FAILED if failed else OK


async def _archive_all(
    args: argparse.Namespace, store: "SqlStore", folder: Path
) -> "tuple[list[Archived], list[str]]":
    from cbench_server.errors import CbenchError, StoreAway
    from cbench_server.storage.run_archive import archive_run

    if store.unwritable:
        raise UsageError(store.unwritable)
    await store.finish_deletions()
    done: list[Archived] = []
    failed: list[str] = []
    for run_id in await _chosen(args, store, folder, done):
        try:
            each = await archive_run(store, folder, run_id, _summary)
        except StoreAway:
            raise
        except CbenchError as error:
            failed.append(run_id)
            complain(str(error))
        else:
            done.append(each)
            inform(args, f"{each.file}: {each.rows:,} rows, {size_text(each.size)}, verified")
    return done, failed


async def _chosen(
    args: argparse.Namespace, store: "SqlStore", folder: Path, done: "list[Archived]"
) -> list[str]:
    """Look every run up; one that only its file still has is done."""
    from cbench_server.errors import UnknownRun
    from cbench_server.runs.store import RetentionRule
    from cbench_server.storage.run_archive import archived_already

    if args.older_than is not None:
        rule = RetentionRule(older_than=args.older_than)
        return [each.run_id for each in await store.prune(rule, dry_run=True)]
    found: list[str] = []
    for text in args.runs:
        try:
            found.append(await named_run(store, text))
        except UnknownRun:
            done.append(archived_already(folder, text))
            inform(args, f"{done[-1].file}: archived already, {done[-1].rows:,} rows")
    return [*dict.fromkeys(found)]


def _summary(run: "Run") -> bytes:
    from cbench_server.reports.json_report import run_to_dict
    from cbench_server.results import strict_json

    return strict_json(run_to_dict(run)).encode() + b"\n"
