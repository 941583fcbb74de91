"""`cbench runs`, `cbench runs delete` and `cbench cancel`."""

import argparse
import sys
from itertools import islice
from typing import Any

from cbench_client._gen.cbench.v1 import bench_pb2
from cbench_server.cli.connection import connect
from cbench_server.cli.decode import run_of
from cbench_server.cli.exits import OK
from cbench_server.cli.naming import find_run
from cbench_server.cli.screen import draw, print_json
from cbench_server.reports.grid import Grid
from cbench_server.reports.json_report import run_to_dict
from cbench_server.reports.table import state_line
from cbench_server.spec import Run


def list_runs(args: argparse.Namespace) -> int:
    """List runs, newest first."""
    states: list[Any] = [
        bench_pb2.RunState.Value(f"RUN_STATE_{state.upper()}") for state in args.states
    ]
    with connect(args) as client:
        listed = client.list(states=states, labels=dict(args.labels))
        runs = [run_of(message) for message in islice(listed, args.limit)]
    if args.output == "json":
        print_json([run_to_dict(run) for run in runs])
    elif runs:
        print(draw(runs_grid(runs)))
    else:
        print("There are no such runs. Start one with: cbench run", file=sys.stderr)
    return OK


def delete_runs(args: argparse.Namespace) -> int:
    """Delete runs; every name is looked up before the first is deleted."""
    with connect(args) as client:
        found = dict.fromkeys(find_run(client, text) for text in args.runs)
        for run_id in found:
            client.delete(run_id)
            print(f"deleted {run_id}", file=sys.stderr)
    return OK


def cancel_run(args: argparse.Namespace) -> int:
    """Stop a run."""
    with connect(args) as client:
        run = run_of(client.cancel(find_run(client, args.run)))
    print(state_line(run), file=sys.stderr)
    return OK


def runs_grid(runs: list[Run]) -> Grid:
    """Build the table of runs."""
    header = ("Run", "State", "Rows", "Failed", "Systems", "Datasets", "Labels")
    return Grid(header, tuple(map(_row, runs)), frozenset({1, 4, 5, 6}))


def _row(run: Run) -> tuple[str, ...]:
    total = "?" if run.total_rows is None else f"{run.total_rows:,}"
    rows = f"{run.completed_rows:,}"
    return (
        run.run_id,
        str(run.state),
        rows if run.total_rows == run.completed_rows else f"{rows}/{total}",
        f"{run.failed_rows:,}",
        ", ".join(run.systems),
        ", ".join(dataset.label for dataset in run.spec.datasets),
        ", ".join(f"{key}={value}" for key, value in sorted(run.spec.labels.items())),
    )
