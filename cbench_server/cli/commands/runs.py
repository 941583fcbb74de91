"""`cbench runs`: list stored runs, or delete, prune, archive, pin or salvage some."""

import argparse
import time
from itertools import islice
from typing import TYPE_CHECKING

from cbench_server.cli import options
from cbench_server.cli.archive import add_archive
from cbench_server.cli.connect import check_no_server, connect, server_of
from cbench_server.cli.exits import OK, complain
from cbench_server.cli.local_store import in_store
from cbench_server.cli.outcome import add_json, inform, tell
from cbench_server.cli.stored_runs import find_run_id, run_of
from cbench_server.cli.upkeep import add_actions
from cbench_server.cli.values import positive_int

if TYPE_CHECKING:
    from cbench_server.spec import Run
    from cbench_server.storage.sql_store import SqlStore
    from cbench_server.texts.grid import Grid

# The columns of the listing, and whether each is text.
_COLUMNS = (
    ("Run", True),
    ("Started", True),
    ("State", True),
    ("Rows", False),
    ("Failed", False),
    ("Score", True),
    ("Datasets", True),
    ("By", True),
    ("Labels", True),
)
_STATES = ("queued", "running", "waiting", "succeeded", "failed", "cancelled")


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of a listing, which may stand before or after `list`, and `delete`."""
    parser.set_defaults(handler=list_runs)
    _add_listing(parser)
    actions = parser.add_subparsers(metavar="ACTION", dest="action")
    listing = options.add_action(actions, "list", list_runs, "List stored runs, newest first")
    _add_listing(listing)
    options.inherit_flags(listing)
    delete = options.add_action(
        actions, "delete", delete_runs, "Delete finished runs with their rows"
    )
    delete.add_argument("runs", metavar="RUN", nargs="+", help=options.RUN_HELP)
    add_json(delete)
    options.add_server_flags(delete)
    options.inherit_flags(delete)
    add_actions(actions)
    add_archive(actions)


def _add_listing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--state",
        dest="states",
        choices=_STATES,
        help="only runs in this state; repeatable",
        **options.REPEATABLE,
    )
    options.add_labels(parser, "only runs with this label; repeatable")
    parser.add_argument(
        "--mine", action="store_true", help="only runs that were started with the same token"
    )
    parser.add_argument(
        "--limit",
        metavar="N",
        type=positive_int,
        default=20,
        help="list at most this many runs (default: 20)",
    )
    options.add_output(parser)
    options.add_server_flags(parser)


def list_runs(args: argparse.Namespace) -> int:
    """List runs, newest first."""
    is_json = args.output == "json"
    runs = _asked_for(args) if is_json or server_of(args) else _stored(args)
    if is_json:
        # Only here: it takes as long as reading the runs.
        from cbench_server.cli.screen import print_json
        from cbench_server.reports.json_report import run_to_dict

        print_json([run_to_dict(run) for run in runs])
    elif runs:
        from cbench_server.cli.screen import draw

        print(draw(_listing(runs)))
    else:
        inform(args, "There are no such runs. Start one with: cbench run")
    for run in runs:
        if _is_damaged(run) and run.failure:
            complain(run.failure.message)
    return OK


def _asked_for(args: argparse.Namespace) -> "list[Run]":
    """Ask a daemon for the runs."""
    from cbench_client._gen.cbench.v1 import bench_pb2

    states = [bench_pb2.RunState.Value(f"RUN_STATE_{state.upper()}") for state in args.states]
    with connect(args) as client:
        listed = client.list(states=states, labels=dict(args.labels), mine=args.mine)
        return [run_of(message) for message in islice(listed, args.limit)]


def _stored(args: argparse.Namespace) -> "list[Run]":
    """Read the runs from the store here: a daemon in this process would take thrice as long."""
    from cbench_server.spec import RunState

    check_no_server(args)

    async def read(store: "SqlStore") -> "list[Run]":
        runs: list[Run] = []
        before: str | None = None
        while len(runs) < args.limit:
            page = await store.page_runs(
                limit=args.limit - len(runs),
                before=before,
                states=[RunState(state) for state in args.states],
                labels=dict(args.labels),
                # Without a daemon nobody has a name.
                created_by="" if args.mine else None,
            )
            runs += page.runs
            before = page.next_before
            if before is None:
                break
        return runs

    return in_store(args, read)


def _listing(runs: "list[Run]") -> "Grid":
    """Draw up the table; a column that would be empty throughout is left out."""
    from cbench_server.texts.grid import Grid

    rows = [_row(run) for run in runs]
    kept = [
        place
        for place, (title, _) in enumerate(_COLUMNS)
        if title != "Labels" or any(row[place] for row in rows)
    ]
    left = frozenset(new for new, place in enumerate(kept) if _COLUMNS[place][1])
    shown = tuple(tuple(row[place] for place in kept) for row in rows)
    return Grid(tuple(_COLUMNS[place][0] for place in kept), shown, left)


def _is_damaged(run: "Run") -> bool:
    """Whether no more is known of it than its id and what is damaged."""
    return (
        run.failure is not None and run.failure.reason == "STORE_CORRUPT" and not run.spec.systems
    )


def _row(run: "Run") -> tuple[str, ...]:
    from cbench_server.reports.suites import dataset_names

    total = "?" if run.total_rows is None else f"{run.total_rows:,}"
    rows = f"{run.completed_rows:,}"
    started = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.create_time))
    return (
        run.run_id,
        # When a run was started whose row is damaged cannot be told.
        started if run.create_time else "—",
        "damaged" if _is_damaged(run) else str(run.state),
        rows if run.total_rows == run.completed_rows else f"{rows}/{total}",
        f"{run.failed_rows:,}",
        _scores(run),
        ", ".join(dataset_names(run)),
        run.created_by or "—",
        ", ".join(f"{key}={value}" for key, value in sorted(run.spec.given_labels.items())),
    )


def _scores(run: "Run") -> str:
    """Name each system with its score, and the score where all systems have the same."""
    from cbench_server.reports.judges import with_mark
    from cbench_server.reports.suites import headline_suite, own_figure
    from cbench_server.texts import numbers

    suite, figure = headline_suite(run), own_figure(run)
    headlines: dict[str, list[str]] = {
        system: [with_mark(name, run) for name in names]
        for system, names in (run.config.get("headlines") or {}).items()
    }
    names = {tuple(headlines.get(system, ())) for system in run.ranked}
    is_same = len(names) == 1
    parts = []
    for system in run.ranked:
        values = run.summary.get(system, {})
        value = values.get("mean_score_with_failures", values.get("mean_score"))
        if suite is not None or figure:
            value = values.get(suite.shown_key if suite is not None else figure)
        kind = "" if is_same else f" {' and '.join(headlines.get(system, ()))}"
        parts.append(f"{system} {numbers.score(value)}{kind}" if values else system)
    shown = ", ".join(parts)
    name = " and ".join(next(iter(names), ())) if is_same else ""
    name = suite.title if suite is not None else figure or name
    return f"{name}: {shown}" if name else shown


def delete_runs(args: argparse.Namespace) -> int:
    """Delete runs; every name is looked up before the first is deleted."""
    with connect(args) as client:
        found = dict.fromkeys(find_run_id(client, text) for text in args.runs)
        for run_id in found:
            client.delete(run_id)
    tell(args, {"deleted": [*found]}, *(f"deleted {run_id}" for run_id in found))
    return OK
