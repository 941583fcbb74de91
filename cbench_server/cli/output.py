"""The run that a command prints: as a table, by a reporter, or row by row."""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice

from cbench_client import BenchClient
from cbench_client._gen.cbench.v1 import bench_pb2
from cbench_server.cli.exits import FAILED, OK, USAGE, UsageError, complain
from cbench_server.cli.files import write_file, write_stdout
from cbench_server.cli.screen import draw, print_json, print_line
from cbench_server.cli.stored_runs import report_from, rows_of
from cbench_server.datasets.validate import NO_CONTEXT
from cbench_server.errors import NothingMatches, UnknownName
from cbench_server.registry import registry
from cbench_server.reports.failure_groups import group_failures
from cbench_server.reports.json_report import row_line, run_to_dict
from cbench_server.reports.table import RowFacts, to_table
from cbench_server.results import EvalRow
from cbench_server.rpc.rows import row_from_proto
from cbench_server.spec import Run, RunState
from cbench_server.texts.grid import printable

TABLE = "table"
_BINARY = frozenset({"parquet"})
# Enough to tell why rows fail without reading all of them.
_FAILURES_READ = 2000
_ROWS_READ = 200


def check_output(args: argparse.Namespace) -> None:
    """Refuse an unknown `--output`, or one that a terminal cannot show."""
    if args.output == TABLE:
        return
    try:
        name = registry.name_of("reporter", args.output)
    except UnknownName:
        args.parser.refuse("--output", args.output, [TABLE, *registry.list("reporter")])
    check_terminal(name, "redirect stdout to a file")


def check_terminal(name: str, instead: str) -> None:
    """Refuse to print binary output on a terminal."""
    if name in _BINARY and sys.stdout.isatty():
        raise UsageError(f"{name} is not text for a terminal; {instead}.")


def print_run(client: BenchClient, run: Run, output: str, *, with_rows: bool = True) -> None:
    """Print a run as a table or by a reporter; JSON has the rows only if `with_rows`."""
    if output == TABLE:
        print(to_table(run, row_facts(client, run), draw), end="")
    elif output == "json" and not with_rows:
        print_json(run_to_dict(run))
    else:
        name = registry.name_of("reporter", output)
        parts = registry.get("reporter", name)(report_from(client, run))
        # A page is unreadable on a terminal, so it becomes a file.
        if name == "html" and sys.stdout.isatty():
            write_page(parts, page_name(run))
        else:
            write_stdout(parts)


def print_row(message: bench_pb2.EvalRow) -> None:
    """Print one row as a line of JSON."""
    print_line(row_line(row_from_proto(message)))


def write_page(page: Iterable[str | bytes], path: str) -> None:
    """Write the page to a file, and say where it is."""
    size = write_file(path, page)
    print(printable(f"{path} ({size}): open it in any browser; it needs no network"))


def page_name(run: Run) -> str:
    """Name a page after its run."""
    return f"cbench-{run.run_id}.html"


def row_facts(client: BenchClient, run: Run) -> RowFacts:
    """Read some rows for facts that the summary does not have."""
    scores = {}
    broken: dict[str, str] = {}
    for system in run.systems:
        some = list(islice(rows_of(client, run.run_id, system=system), _ROWS_READ))
        scores[system] = tuple(sorted({row.score_name for row in some} - {""}))
        for row in some:
            for name, failure in row.evaluator_failures.items():
                broken.setdefault(name, failure.message)
    failed: list[EvalRow] = []
    if run.failed_rows:
        failed = list(islice(rows_of(client, run.run_id, failed_only=True), _FAILURES_READ))
    failures = Counter(row.failure.reason for row in failed if row.failure)
    return RowFacts(failures, scores, broken, group_failures(failed))


def print_end(client: BenchClient, run: Run, output: str, *, with_rows: bool) -> None:
    """Print a run that has ended, and once why it failed: in the table, or on stderr."""
    # A budget that is spent is what was asked for, and how far it went belongs to the figures.
    is_one = run.has_spent_budget or sys.stdout.isatty() or _are_streams_one()
    in_table = output == TABLE and is_one
    shown = run
    if run.failure and not in_table and output == TABLE:
        shown = replace(run, failure=replace(run.failure, message=""))
    print_run(client, shown, output, with_rows=with_rows)
    if not in_table:
        complain_of_failure(run)
    elif run.failure and (remedy := _remedy(run.failure.message)):
        print(remedy)


def complain_of_failure(run: Run) -> None:
    """Say on stderr why a run failed, if it did."""
    if run.failure:
        said = f"run {run.run_id} failed: {run.failure.message}"
        remedy = _remedy(run.failure.message)
        complain(f"{said.rstrip('.')}. {remedy}" if remedy else said)


def _remedy(message: str) -> str:
    """Return the flag that helps against a failure, empty if none is known."""
    return "Name the field that holds it: --map context=FIELD" if NO_CONTEXT in message else ""


def _are_streams_one() -> bool:
    """Whether stdout and stderr end in the same file or pipe."""
    try:
        return os.path.sameopenfile(sys.stdout.fileno(), sys.stderr.fileno())
    except (OSError, ValueError):
        return False


def exit_code(run: Run) -> int:
    """Return 1 for a run that did not reach its end, or of which every row failed.

    2 for one whose dataset has none of what was asked for.
    """
    if run.failure is not None and run.failure.reason == NothingMatches.reason:
        return USAGE
    has_rows = run.completed_rows == 0 or run.failed_rows < run.completed_rows
    return OK if run.state is RunState.SUCCEEDED and has_rows else FAILED
