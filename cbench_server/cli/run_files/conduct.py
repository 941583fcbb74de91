"""Runs that files started: what is kept of the file, and runs that are left to a daemon."""

import argparse
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cbench_server.cli.connect import server_of
from cbench_server.cli.exits import OK, CommandFailed, UsageError
from cbench_server.cli.run_files import records
from cbench_server.spec import RUN_FILE_LABEL

if TYPE_CHECKING:
    from cbench_client._gen.cbench.v1 import bench_pb2

_ENDING = ("launch", "exec", "http")


def check_detach(args: argparse.Namespace) -> None:
    """Refuse `--detach` where the run would end with this command."""
    if not args.detach:
        return
    if not server_of(args):
        raise UsageError(
            "--detach leaves the run to a daemon, and there is none: without --server it lives in "
            "this command. Start one with `cbench-server`, and pass --server HOST:PORT."
        )
    for kind, value in args.systems:
        if kind in _ENDING:
            raise UsageError(
                f"--detach cannot leave --{kind} {value} behind: it ends with this command. Start "
                "it by itself and name it with --system or --attached."
            )


def labelled(spec: dict[str, Any], args: argparse.Namespace) -> dict[str, Any]:
    """Have a run that a file started keep what the file says."""
    if args.filed is None:
        return spec
    text = records.text_for_run(args)
    return {**spec, "labels": {**spec["labels"], RUN_FILE_LABEL: text}} if text else spec


def kept(
    args: argparse.Namespace, events: "Iterator[bench_pb2.RunEvent]"
) -> "Iterator[bench_pb2.RunEvent]":
    """Write down what a run was asked to do once it has an id."""
    for event in events:
        if event.HasField("accepted"):
            records.keep(args, event.accepted.run_id)
        yield event


def leave_to_daemon(args: argparse.Namespace, events: "Iterator[bench_pb2.RunEvent]") -> int:
    """Start a run and leave it; say how to follow it."""
    for event in events:
        if event.HasField("accepted"):
            run_id = event.accepted.run_id
            print(run_id)
            where = f" --server {args.server}" if args.server else ""
            print(f"follow it with: cbench attach {run_id}{where}", file=sys.stderr)
            return OK
    raise CommandFailed("the daemon took the run and never named it.")
