"""`cbench rescore`."""

import argparse
import sys
from pathlib import Path

from cbench_client import BenchClient
from cbench_client._gen.cbench.v1 import bench_pb2
from cbench_server.cli.connection import connect
from cbench_server.cli.exits import complain
from cbench_server.cli.follow import Interrupted, follow, sum_up_interruption
from cbench_server.cli.judge_flags import judge_evaluators
from cbench_server.cli.naming import find_run
from cbench_server.cli.output import exit_code, print_run
from cbench_server.cli.spec import build_evaluators
from cbench_server.cli.uploads import upload


def rescore(args: argparse.Namespace) -> int:
    """Score the stored answers of a run again, follow, print."""
    with connect(args) as client:
        parent = client.get(find_run(client, args.run))
        child = client.rescore(
            parent.run_id,
            _evaluators(args, parent),
            references_upload=_references(client, args),
            labels=dict(args.labels),
        )
        print(f"run {child.run_id} scores {parent.run_id} anew", file=sys.stderr)
        try:
            events = client.watch(child.run_id, include_rows=False)
            finished = follow(client, events, run_id=child.run_id, quiet=args.quiet)
        except Interrupted as interruption:
            return sum_up_interruption(interruption.run)
        print_run(client, finished, args.output, with_rows=False)
    if finished.failure and not (args.output == "table" and sys.stdout.isatty()):
        complain(f"run {finished.run_id} failed: {finished.failure.message}")
    return exit_code(finished)


def _evaluators(args: argparse.Namespace, parent: bench_pb2.Run) -> list[dict[str, object]]:
    is_memory = parent.spec.kind == bench_pb2.RUN_KIND_MEMORY
    args.kind = "memory" if is_memory else "process"
    named = build_evaluators(args.evaluators, args.evaluator_options)
    return [*named, *judge_evaluators(args)]


def _references(client: BenchClient, args: argparse.Namespace) -> str:
    if not args.references:
        return ""
    sent = upload(client, Path(args.references), None, skip_bad_lines=args.skip_bad_lines)
    return str(sent["upload"])
