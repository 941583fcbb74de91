"""`cbench export`: write a run in a format for other programs."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from cbench_server.cli import options
from cbench_server.cli.connect import connect
from cbench_server.cli.exits import OK, UsageError
from cbench_server.cli.files import STDOUT, size_text, write_file, write_stdout
from cbench_server.cli.outcome import inform
from cbench_server.cli.stored_runs import find_run, report_from
from cbench_server.reports import WHOLE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cbench_client import BenchClient
    from cbench_server.reports.report import Reporter
    from cbench_server.spec import Run

_RUN_SUFFIXES = (".run", ".run.gz")


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `cbench export`."""
    parser.set_defaults(handler=export)
    options.add_run_id(parser)
    parser.add_argument(
        "--format",
        metavar="NAME",
        help="markdown, json, jsonl, csv, parquet, junit, html, swebench, alpaca-eval, "
        "mt-bench, longmemeval, inspect (a log for Inspect AI), run (which `cbench import` reads "
        "back) or a registered reporter (default: by FILE's suffix)",
    )
    parser.add_argument(
        "--json",
        dest="format",
        action="store_const",
        const="json",
        help="the same as --format json; docs/json.md",
    )
    parser.add_argument(
        "--with-texts",
        action="store_true",
        help="also write question, context, answer, what the system left of the context, and the "
        "response; for csv, jsonl and parquet",
    )
    parser.add_argument(
        "--partition-by",
        metavar="COLUMN",
        dest="partition_by",
        choices=("system", "dataset"),
        help="write a new folder FILE of Parquet files, one for each system or dataset; repeatable",
        **options.REPEATABLE,
    )
    parser.add_argument(
        "--system",
        metavar="NAME",
        default="",
        help="the system whose log to write, for inspect (default: the only one)",
    )
    options.add_group_by(parser, "also give the score of each group of rows")
    parser.add_argument(
        "-o", "--out", metavar="FILE", default="-", help="where to write (default: stdout)"
    )
    options.add_server_flags(parser)


def export(args: argparse.Namespace) -> int:
    """Write the run, to stdout unless a file is named."""
    from cbench_server.cli.output import check_terminal

    is_packed = False
    if args.partition_by:
        return _export_folder(args)
    with connect(args) as client:
        # After connect(), which imports the modules of --import with their reporters.
        name = args.format or _format(args.out)
        if name == WHOLE:
            is_packed = args.out.endswith(".gz")
        if args.out == STDOUT:
            check_terminal(name, "pass -o FILE")
        parts = _parts(client, find_run(client, args.run), name, args)
        if args.out == STDOUT:
            write_stdout(parts)
            return OK
        size = write_file(args.out, _compressed(parts) if is_packed else parts)
    inform(args, f"{args.out} ({size})")
    return OK


def _export_folder(args: argparse.Namespace) -> int:
    """Write a folder of Parquet files."""
    from cbench_server.reports.formats import full_rows
    from cbench_server.reports.parquet_folder import write_parquet_folder

    if args.format not in (None, "parquet"):
        raise UsageError(f"--partition-by goes with parquet, not {args.format}.")
    if args.out == STDOUT:
        raise UsageError("--partition-by writes a folder; name it with -o.")
    with connect(args) as client:
        report = report_from(client, find_run(client, args.run), group_by=args.group_by)
        full = (lambda: full_rows(report)) if args.with_texts else None
        folder = Path(args.out)
        try:
            size = write_parquet_folder(folder, args.partition_by, report.rows, full)
        except OSError as error:
            raise UsageError(f"cannot write {folder}: {error.strerror}.") from error
    inform(args, f"{folder} ({size_text(size)})")
    return OK


def _parts(
    client: "BenchClient", run: "Run", name: str, args: argparse.Namespace
) -> "Iterable[str | bytes]":
    """Have the daemon write the run, unless only this process knows the format."""
    from cbench_server.registry import registry
    from cbench_server.reports.formats import REPORTERS

    known = registry.list("reporter")
    is_own = name in known and registry.get("reporter", name) is not REPORTERS.get(name)
    if is_own and not args.with_texts and not args.system:
        reporter: Reporter = registry.get("reporter", name)
        return reporter(report_from(client, run, group_by=args.group_by))
    return client.export(
        run.run_id, name, group_by=args.group_by, with_texts=args.with_texts, system=args.system
    )


def _compressed(parts: "Iterable[str | bytes]") -> "Iterable[bytes]":
    from cbench_server.storage.run_format import compressed

    return compressed(part for part in parts if isinstance(part, bytes))


def _format(out: str) -> str:
    """Return the format that belongs to a file's suffix."""
    from cbench_server.registry import registry
    from cbench_server.reports.formats import SUFFIXES

    if out.endswith(_RUN_SUFFIXES):
        return WHOLE
    suffix = Path(out).suffix.lower()
    if suffix not in SUFFIXES:
        known = ", ".join(registry.list("reporter"))
        what = "stdout has no suffix" if out == STDOUT else f'"{out}" has no known suffix'
        raise UsageError(f"{what}; pass --format. Known: {known}.")
    return SUFFIXES[suffix]
