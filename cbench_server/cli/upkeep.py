"""Upkeep of stored runs: what can be saved of them, which are let go, and which are kept."""

import argparse
import time
from typing import TYPE_CHECKING

from cbench_server.cli import options
from cbench_server.cli.connect import connect, server_of
from cbench_server.cli.exits import OK, UsageError
from cbench_server.cli.files import STDOUT, write_file, write_stdout
from cbench_server.cli.local_store import in_store, local_home, named_run, settings_of
from cbench_server.cli.outcome import add_json, inform, tell
from cbench_server.cli.stored_runs import find_run
from cbench_server.cli.values import age, natural_int, size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cbench_server.runs.store import PrunedRun, RetentionRule
    from cbench_server.storage.sql_store import SqlStore


def add_actions(actions: options.Actions) -> None:
    """Add `salvage`, `prune`, `pin` and `unpin` to `cbench runs`."""
    salvage = options.add_action(
        actions, "salvage", salvage_run, "Write what can be read of a damaged run, to be imported"
    )
    salvage.add_argument("run", metavar="RUN", help=options.RUN_HELP)
    salvage.add_argument(
        "-o", "--out", metavar="FILE", help="where to write (default: RUN.run; - is stdout)"
    )
    add_json(salvage)
    prune = options.add_action(
        actions,
        "prune",
        prune_runs,
        "Delete finished runs that are old, many or large, and what killed processes left behind",
    )
    prune.add_argument(
        "--older-than", metavar="AGE", type=age, help="runs that ended longer ago, such as 30d"
    )
    prune.add_argument(
        "--keep", metavar="N", type=natural_int, help="all finished runs but the newest N"
    )
    prune.add_argument(
        "--max-bytes",
        metavar="SIZE",
        type=size,
        help="the oldest runs, until the store is no larger, such as 5G",
    )
    prune.add_argument("--dry-run", action="store_true", help="only say what would be deleted")
    options.add_output(prune)
    for name, summary in (
        ("pin", "Keep runs from being pruned"),
        ("unpin", "Let runs be pruned again"),
    ):
        pin = options.add_action(actions, name, pin_runs, summary)
        pin.add_argument("runs", metavar="RUN", nargs="+", help=options.RUN_HELP)
        pin.set_defaults(is_pinned=name == "pin")
        add_json(pin)


def salvage_run(args: argparse.Namespace) -> int:
    """Write what can be read; what is lost is said on stderr."""
    from cbench_server.cli.output import check_terminal
    from cbench_server.errors import StoreError, StoreTooNew, UnknownRun
    from cbench_server.storage.opening import database_at
    from cbench_server.storage.run_files import salvage_run as opened
    from cbench_server.storage.run_format import compressed

    home, address = local_home(args), settings_of().store
    try:
        run_id = in_store(args, lambda store: named_run(store, args.run))
    except (StoreError, UnknownRun) as error:
        if args.run == "last" or (address and isinstance(error, StoreTooNew)):
            raise
        run_id = args.run  # The store is too damaged to list its runs, or this one.
    out = args.out or f"{run_id}.run"
    if out == STDOUT:
        check_terminal("run", "pass -o FILE")
    with opened(database_at(home, address), run_id) as (survey, parts):
        if out == STDOUT:
            write_stdout(parts)
        else:
            write_file(out, compressed(parts) if out.endswith(".gz") else parts)
        said = [f"{out}: {survey.sentence}", *(f"lost: {lost}" for lost in survey.lost)]
        if survey.run.run_id != run_id:
            said.insert(1, f"what was stored as {run_id} is run {survey.run.run_id}")
    if out == STDOUT:
        for sentence in said:
            inform(args, sentence)
        return OK
    document = {"run_id": run_id, "file": out, "found": survey.sentence, "lost": [*survey.lost]}
    tell(args, document, *said, f"Read it back with: cbench import {out} --new-id")
    return OK


def prune_runs(args: argparse.Namespace) -> int:
    """Delete what the flags let go, none without them, then files that nothing needs any more."""
    from cbench_server.cli.screen import print_json
    from cbench_server.runs.store import RetentionRule

    rule = RetentionRule(older_than=args.older_than, keep=args.keep, max_bytes=args.max_bytes)
    # A daemon removes by itself what nothing needs.
    if rule == RetentionRule() and (args.dry_run or server_of(args)):
        raise UsageError("say which runs to delete: --older-than, --keep or --max-bytes.")
    pruned, removed = _pruned_there(args, rule) if server_of(args) else _pruned_here(args, rule)
    if args.output == "json":
        print_json(
            [
                {
                    "run_id": each.run_id,
                    "end_time": each.end_time,
                    "bytes": each.size,
                    "why": each.why,
                }
                for each in pruned
            ]
        )
        return OK
    for line in _lines(pruned, removed, is_dry=args.dry_run):
        inform(args, line)
    return OK


def _pruned_here(
    args: argparse.Namespace, rule: "RetentionRule"
) -> "tuple[list[PrunedRun], list[str]]":
    from cbench_server.daemon.housekeeping import clean

    home = local_home(args)

    async def prune(store: "SqlStore") -> "tuple[list[PrunedRun], list[str]]":
        if args.dry_run:
            return await store.prune(rule, dry_run=True), []
        await store.finish_deletions()
        pruned = await store.prune(rule)
        return pruned, await clean(store, store.uploads(home, 0, 0), home)

    return in_store(args, prune)


def _pruned_there(
    args: argparse.Namespace, rule: "RetentionRule"
) -> "tuple[list[PrunedRun], list[str]]":
    from cbench_server.runs.store import PrunedRun

    with connect(args) as client:
        done = client.prune(
            older_than=rule.older_than,
            keep=rule.keep,
            max_bytes=rule.max_bytes,
            dry_run=args.dry_run,
        )
    runs = [
        PrunedRun(each.run_id, each.end_time.ToNanoseconds() / 1e9, each.size_bytes, each.why)
        for each in done.runs
    ]
    return runs, list(done.removed_files)


def _lines(pruned: "list[PrunedRun]", removed: list[str], *, is_dry: bool) -> "Iterator[str]":
    done = "would delete" if is_dry else "deleted"
    for each in pruned:
        ended = time.strftime("%Y-%m-%d %H:%M", time.localtime(each.end_time))
        yield f"{done} {each.run_id} (ended {ended}, {each.size / 1e6:,.1f} MB, by {each.why})"
    for name in removed:
        yield f"removed {name}"
    count = f"{len(pruned):,} run{'' if len(pruned) == 1 else 's'}"
    yield f"{done} {count}, {sum(each.size for each in pruned) / 1e6:,.1f} MB"


def pin_runs(args: argparse.Namespace) -> int:
    """Pin or unpin runs; every name is looked up before the first is changed."""

    async def pin(store: "SqlStore") -> list[str]:
        found = [await named_run(store, text) for text in args.runs]
        for run_id in found:
            await store.pin(run_id, args.is_pinned)
        return found

    done = "pinned" if args.is_pinned else "unpinned"
    run_ids = _pin_there(args) if server_of(args) else in_store(args, pin)
    tell(args, {done: run_ids}, *(f"{done} {run_id}" for run_id in run_ids))
    return OK


def _pin_there(args: argparse.Namespace) -> list[str]:
    with connect(args) as client:
        change = client.pin if args.is_pinned else client.unpin
        found = [find_run(client, text).run_id for text in args.runs]
        return [change(run_id) for run_id in found]
