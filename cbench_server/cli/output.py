"""A finished run on stdout, in the format asked for."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from cbench_client import BenchClient
from cbench_server.cli.decode import row_of
from cbench_server.cli.exits import FAILED, OK
from cbench_server.cli.report import print_page
from cbench_server.cli.screen import draw, print_json, print_parts
from cbench_server.reports.csv_report import to_csv
from cbench_server.reports.json_report import run_to_dict, to_json
from cbench_server.reports.markdown import to_markdown
from cbench_server.reports.reporters import examples_of
from cbench_server.reports.table import RowFacts, to_table
from cbench_server.results import EvalRow
from cbench_server.spec import Run, RunState

# Enough to tell why rows fail, without reading a million of them.
_FAILURES_READ = 2000
_ROWS_READ = 200


def print_run(client: BenchClient, run: Run, output: str, *, with_rows: bool = True) -> None:
    """Print a run; jsonl has been printed row by row already."""

    def rows() -> Iterator[EvalRow]:
        return map(row_of, client.rows(run.run_id))

    if output == "table":
        print_parts([to_table(run, row_facts(client, run), draw)])
    elif output == "markdown":
        print_parts([to_markdown(run.summary, run.timing, examples_of(run))])
    elif output == "csv":
        print_parts(to_csv(rows))
    elif output == "html":
        print_page(client, run)
    elif output == "json" and with_rows:
        print_parts(to_json(run, rows()))
    elif output == "json":
        print_json(run_to_dict(run))


def row_facts(client: BenchClient, run: Run) -> RowFacts:
    """Learn from some rows what the summary does not say."""
    scores = {}
    broken: dict[str, str] = {}
    for system in run.systems:
        some = [*map(row_of, islice(client.rows(run.run_id, system=system), _ROWS_READ))]
        scores[system] = tuple(sorted({row.primary_score for row in some} - {""}))
        for row in some:
            for name, failure in row.evaluator_failures.items():
                broken.setdefault(name, failure.message)
    failures: Counter[str] = Counter()
    if run.failed_rows:
        failed = islice(client.rows(run.run_id, failed_only=True), _FAILURES_READ)
        failures.update(row.failure.reason for row in failed)
    return RowFacts(failures, scores, broken)


def exit_code(run: Run) -> int:
    """Failed rows are results; only a run that did not get to its end is a failure."""
    return OK if run.state is RunState.SUCCEEDED else FAILED
