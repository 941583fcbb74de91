"""`cbench run` and `cbench memory run`."""

import argparse
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cbench_client import BenchClient, Refused
from cbench_client._gen.cbench.v1 import bench_pb2
from cbench_client.channel import is_loopback
from cbench_server.cli.connection import connect, server_of, system_tls
from cbench_server.cli.decode import row_of
from cbench_server.cli.exits import UsageError, complain
from cbench_server.cli.follow import Interrupted, follow, sum_up_interruption
from cbench_server.cli.launch import launched
from cbench_server.cli.output import exit_code, print_run
from cbench_server.cli.screen import print_line
from cbench_server.cli.spec import build_spec, check_systems, is_file, registered_dataset
from cbench_server.cli.uploads import upload
from cbench_server.datasets.files import FILE_SUFFIXES
from cbench_server.reports.grid import printable
from cbench_server.reports.json_report import row_line

# How long a daemon may be away before we stop asking for it; the run goes on without us.
_PATIENCE = 600.0
_ASK_AGAIN_S = 0.5


def run(args: argparse.Namespace) -> int:
    """Evaluate, follow, print."""
    check_systems(args)
    if not args.datasets and args.kind == "memory":
        args.datasets = ["locomo"]
    if not args.datasets:
        raise UsageError("name at least one --dataset. List them with: cbench datasets")
    tls = system_tls(args)
    with _launched_systems(args) as targets, connect(args) as client:
        datasets = [_dataset(client, args, text) for text in args.datasets]
        spec = build_spec(args, targets, datasets, tls)
        rows_wanted = args.output == "jsonl"
        events = _evaluate(client, spec, rows_wanted, args.wait or 0.0)
        try:
            finished = follow(
                client, events, quiet=args.quiet, on_row=print_row if rows_wanted else None
            )
        except Interrupted as interruption:
            return sum_up_interruption(interruption.run, targets.values())
        print_run(client, finished, args.output)
    # The table says why a run failed, to whoever sees it.
    if finished.failure and not (args.output == "table" and sys.stdout.isatty()):
        complain(f"run {finished.run_id} failed: {finished.failure.message}")
    return exit_code(finished)


def _evaluate(
    client: BenchClient, spec: dict[str, Any], rows_wanted: bool, wait: float
) -> Iterator[bench_pb2.RunEvent]:
    """Start the run and follow it; with `--wait` a system may take its time to appear."""
    request_id, deadline, announced = str(uuid.uuid4()), time.monotonic() + wait, False
    while True:
        try:
            yield from client.evaluate(
                spec, request_id=request_id, include_rows=rows_wanted, reconnect_for=_PATIENCE
            )
            return
        except Refused as error:
            if error.reason != "SYSTEM_UNREACHABLE" or time.monotonic() >= deadline:
                raise
            if not announced:
                print(f"waiting: {printable(str(error))}", file=sys.stderr)
            announced = True
        time.sleep(_ASK_AGAIN_S)


def print_row(message: bench_pb2.EvalRow) -> None:
    """Print one row as a line of JSON."""
    print_line(row_line(row_of(message)))


def _dataset(client: BenchClient, args: argparse.Namespace, text: str) -> dict[str, Any]:
    selection = {
        "shuffle": args.shuffle,
        "where": dict(args.where),
        "split": args.split,
        "revision": args.revision,
        "skip_bad_lines": args.skip_bad_lines,
    }
    if not is_file(text, FILE_SUFFIXES):
        return {**registered_dataset(text, args.max_examples), **selection}
    # What is chosen among all examples is chosen by the daemon, so it gets all of them.
    is_chosen_there = args.shuffle or args.where or args.question_types
    count = None if is_chosen_there else args.max_examples
    sent = upload(client, Path(text), count, skip_bad_lines=args.skip_bad_lines)
    return {**sent, **selection, "max_examples": args.max_examples}


@contextmanager
def _launched_systems(args: argparse.Namespace) -> Iterator[dict[int, str]]:
    """Start what --launch names; yield targets by their place among the systems."""
    places = {
        place: command for place, (kind, command) in enumerate(args.systems) if kind == "launch"
    }
    server = server_of(args)
    if places and server and not is_loopback(server):
        raise UsageError(
            f"--launch starts a system on this machine, where the daemon at {server} cannot "
            "reach it. Start it there and pass --system, or leave out --server."
        )
    with launched(list(places.values())) as targets:
        yield dict(zip(places, targets, strict=True))
