"""The flags of all commands but `run`, and those that commands share."""

import argparse
from typing import Any

from cbench_server.cli.parser import Subparsers, command
from cbench_server.cli.values import label, owned_option, positive_int

_RUN_HELP = "a run's id, the beginning of one, or `last`"
STATES = ("queued", "running", "waiting", "succeeded", "failed", "cancelled")


def add_server_flags(parser: Any) -> None:
    """Add the flags that say which daemon to talk to."""
    group = parser.add_argument_group("daemon")
    group.add_argument(
        "--server",
        metavar="HOST:PORT",
        help="the daemon to use, also from CBENCH_SERVER (default: one inside this process, "
        "on the same store)",
    )
    group.add_argument("--token", help="the token the daemon wants, better given in CBENCH_TOKEN")
    group.add_argument("--tls", action="store_true", help="connect to the daemon over TLS")
    group.add_argument(
        "--tls-ca", metavar="FILE", help="likewise, trusting the certificates in this PEM file"
    )
    group.add_argument("--tls-cert", metavar="FILE", help="our own certificate, for mutual TLS")
    group.add_argument("--tls-key", metavar="FILE", help="its key")
    group.add_argument(
        "--import",
        metavar="MODULE",
        dest="imports",
        action="append",
        default=[],
        help="import a Python module that registers components; without --server only",
    )
    group.add_argument(
        "--sandbox",
        choices=("strict", "best-effort", "off"),
        help="how programs under test are locked in (default: strict); without --server only",
    )
    group.add_argument(
        "--data-dir",
        metavar="DIR",
        help="a mirror of datasets to read before the hub is asked, also from CBENCH_DATA_DIR; "
        "without --server only",
    )


def _add_output(parser: Any) -> None:
    parser.add_argument(
        "--output",
        choices=("table", "json"),
        default="table",
        help="what to print on stdout (default: table)",
    )


def _add_run_id(parser: Any) -> None:
    parser.add_argument("run", metavar="RUN", help=_RUN_HELP)


def add_run(commands: Subparsers) -> None:
    """Add `cbench run`."""
    from cbench_server.cli import run_flags

    run_flags.add_run(commands, add_server_flags)


def add_memory(commands: Subparsers) -> None:
    """Add `cbench memory`, which is followed by `run`."""
    from cbench_server.cli import run_flags

    parser = command(commands, "memory", "", "Evaluate memory systems on conversations")
    actions = parser.add_subparsers(metavar="ACTION", dest="action")
    run_flags.add_memory_run(actions, add_server_flags)


def add_runs(commands: Subparsers) -> None:
    """Add `cbench runs`, alone or followed by `list` or `delete`."""
    parser = command(commands, "runs", "runs:list_runs", "List stored runs, or delete some")
    _add_listing(parser)
    actions = parser.add_subparsers(metavar="ACTION", dest="action")
    listing = command(actions, "list", "runs:list_runs", "List stored runs, newest first")
    _add_listing(listing)
    _inherit(listing)
    delete = command(actions, "delete", "runs:delete_runs", "Delete finished runs with their rows")
    delete.add_argument("runs", metavar="RUN", nargs="+", help=_RUN_HELP)
    add_server_flags(delete)
    _inherit(delete)


def _inherit(parser: Any) -> None:
    """Let flags given before the action stand, instead of the action's defaults."""
    for action in parser._actions:
        action.default = argparse.SUPPRESS


def _add_listing(parser: Any) -> None:
    parser.add_argument(
        "--state",
        dest="states",
        choices=STATES,
        action="append",
        default=[],
        help="only runs in this state; repeatable",
    )
    parser.add_argument(
        "--label",
        metavar="KEY=VALUE",
        dest="labels",
        type=label,
        action="append",
        default=[],
        help="only runs with this label; repeatable",
    )
    parser.add_argument(
        "--limit",
        metavar="N",
        type=positive_int,
        default=20,
        help="at most this many (default: 20)",
    )
    _add_output(parser)
    add_server_flags(parser)


def add_show(commands: Subparsers) -> None:
    """Add `cbench show`."""
    parser = command(commands, "show", "show:show", "Show a run, its rows or one example of it")
    _add_run_id(parser)
    parser.add_argument("--rows", metavar="N", type=positive_int, help="list the first N rows")
    parser.add_argument(
        "--failed", action="store_true", help="list rows that failed (50 of them without --rows)"
    )
    parser.add_argument(
        "--example", metavar="ID", help="show one example: original, processed, scores, details"
    )
    parser.add_argument("--system", metavar="NAME", default="", help="only rows of this system")
    _add_output(parser)
    add_server_flags(parser)


def add_watch(commands: Subparsers) -> None:
    """Add `cbench watch`."""
    parser = command(commands, "watch", "watch:watch", "Follow a run to its end")
    _add_run_id(parser)
    parser.add_argument(
        "--output",
        choices=("table", "json", "jsonl"),
        default="table",
        help="what to print on stdout; jsonl prints every row from the first (default: table)",
    )
    parser.add_argument("--quiet", action="store_true", help="show no progress on stderr")
    add_server_flags(parser)


def add_cancel(commands: Subparsers) -> None:
    """Add `cbench cancel`."""
    parser = command(commands, "cancel", "runs:cancel_run", "Stop a run and keep its rows")
    _add_run_id(parser)
    add_server_flags(parser)


def add_resume(commands: Subparsers) -> None:
    """Add `cbench resume`."""
    parser = command(
        commands, "resume", "watch:resume", "Take up a cancelled or failed run where it stopped"
    )
    _add_run_id(parser)
    parser.add_argument(
        "--detach", action="store_true", help="do not follow it; with --server only"
    )
    parser.add_argument(
        "--output",
        choices=("table", "json"),
        default="table",
        help="what to print on stdout (default: table)",
    )
    parser.add_argument("--quiet", action="store_true", help="show no progress on stderr")
    add_server_flags(parser)


def add_score(commands: Subparsers) -> None:
    """Add `cbench score`."""
    parser = command(commands, "score", "score:score", "Score one pair of examples")
    parser.add_argument("--evaluator", metavar="NAME", required=True, help="see: cbench evaluators")
    parser.add_argument(
        "--evaluator-option",
        metavar="NAME.KEY=VALUE",
        dest="evaluator_options",
        type=owned_option,
        action="append",
        default=[],
        help="a setting of the evaluator; repeatable",
    )
    parser.add_argument("original", metavar="ORIGINAL", help="a JSON file, or - for stdin")
    parser.add_argument("processed", metavar="PROCESSED", help="a JSON file, or - for stdin")
    parser.add_argument("--details", action="store_true", help="print what led to the scores, too")
    add_server_flags(parser)


def _add_mirror(actions: Any) -> None:
    fetched = command(
        actions,
        "download",
        "dataset_files:download_datasets",
        "Copy datasets from the hub into a folder for --data-dir",
    )
    fetched.add_argument(
        "datasets", metavar="NAME[:CONFIG]", nargs="+", help="see: cbench datasets"
    )
    fetched.add_argument(
        "--to", metavar="DIR", help="the folder, made if missing (default: CBENCH_DATA_DIR)"
    )
    fetched.add_argument(
        "-n",
        "--max-examples",
        metavar="N",
        type=positive_int,
        help="at most this many rows of each",
    )
    fetched.add_argument("--revision", metavar="REV", help="this commit, tag or branch of the hub")
    checked = command(
        actions,
        "check",
        "dataset_files:check_datasets",
        "Verify the digests of downloaded datasets",
    )
    checked.add_argument(
        "folder", metavar="DIR", nargs="?", help="the folder (default: CBENCH_DATA_DIR)"
    )


def add_components(commands: Subparsers) -> None:
    """Add `datasets`, `evaluators`, `metrics` and `systems`."""
    datasets = command(commands, "datasets", "components:datasets", "List datasets")
    _add_output(datasets)
    add_server_flags(datasets)
    actions = datasets.add_subparsers(metavar="ACTION", dest="action")
    shown = command(
        actions, "show", "dataset_card:show_dataset", "Show a dataset and one example of it"
    )
    shown.add_argument("dataset", metavar="NAME[:CONFIG]", help="see: cbench datasets")
    _add_output(shown)
    add_server_flags(shown)
    _inherit(shown)
    _add_mirror(actions)
    for name in ("evaluators", "metrics"):
        parser = command(commands, name, f"components:{name}", f"List {name}")
        _add_output(parser)
        add_server_flags(parser)
    systems = command(
        commands, "systems", "components:systems", "List built-in and attached systems"
    )
    systems.add_argument(
        "--system", metavar="TARGET", help="ask the process at HOST:PORT what it serves instead"
    )
    systems.add_argument("--system-tls", action="store_true", help="ask over TLS")
    systems.add_argument(
        "--system-ca", metavar="FILE", help="likewise, trusting the certificates in this PEM file"
    )
    _add_output(systems)
    add_server_flags(systems)


def add_doctor(commands: Subparsers) -> None:
    """Add `cbench doctor`."""
    parser = command(
        commands, "doctor", "doctor:doctor", "Check the set-up and say what to do about it"
    )
    _add_output(parser)
