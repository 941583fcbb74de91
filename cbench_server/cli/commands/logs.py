"""`cbench logs`: show the events of a run, and what the systems printed that it launched."""

import argparse
import sys
import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from cbench_server.cli import options
from cbench_server.cli.connect import connect
from cbench_server.cli.event_lines import Entry, entry_of, line_of
from cbench_server.cli.exits import INTERRUPTED, OK
from cbench_server.cli.launched_logs import LaunchedLog, launched_logs
from cbench_server.cli.screen import json_text
from cbench_server.cli.stored_runs import find_run

if TYPE_CHECKING:
    from cbench_client._gen.cbench.v1 import bench_pb2

_LOOK_EVERY_S = 0.25


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `cbench logs`."""
    parser.set_defaults(handler=logs)
    options.add_run_id(parser)
    parser.add_argument(
        "--follow", action="store_true", help="go on until the run ends; leaving does not stop it"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")
    options.add_server_flags(parser)


def logs(args: argparse.Namespace) -> int:
    """Print the log of a run."""
    with connect(args) as client:
        run = find_run(client, args.run)
        printer = _Printer(run.run_id, is_json=args.json)
        launched = launched_logs(run)
        is_over = run.state.is_final
        # Rows that did not fail have no line, and need not be sent.
        has_rows = bool(run.failed_rows) or (args.follow and not is_over)
        events: Iterable[bench_pb2.RunEvent] = client.watch(run.run_id, include_rows=has_rows)
        if not args.follow:
            events = _until(events, run.last_seq)
        try:
            if args.follow and not is_over:
                _follow(events, launched, printer)
            else:
                printer.events(events)
                for each in launched:
                    printer.lines(each, is_over=True)
        except KeyboardInterrupt:
            print("the run is left as it is", file=sys.stderr)
            return INTERRUPTED
        finally:
            for each in launched:
                each.close()
    return OK


def _until(events: "Iterable[bench_pb2.RunEvent]", last: int) -> "Iterator[bench_pb2.RunEvent]":
    """Yield what is stored by now, of a run that may go on."""
    if not last:
        return
    for event in events:
        if event.sequence > last:
            return
        yield event
        if event.sequence == last or (not event.sequence and event.HasField("progress")):
            return


def _follow(
    events: "Iterable[bench_pb2.RunEvent]", launched: list[LaunchedLog], printer: "_Printer"
) -> None:
    is_over = threading.Event()

    def listen() -> None:
        while not is_over.wait(_LOOK_EVERY_S):
            for each in launched:
                printer.lines(each)

    listening = threading.Thread(target=listen, name="cbench-logs", daemon=True)
    listening.start()
    try:
        printer.events(events)
    finally:
        is_over.set()
        listening.join()
        for each in launched:
            printer.lines(each, is_over=True)


class _Printer:
    """Prints entries and lines, one at a time."""

    def __init__(self, run_id: str, *, is_json: bool) -> None:
        self._run_id = run_id
        self._is_json = is_json
        self._lock = threading.Lock()

    def events(self, events: "Iterable[bench_pb2.RunEvent]") -> None:
        """Print events as they come."""
        for event in events:
            if entry := entry_of(event, self._run_id):
                self._print(entry, line_of(entry))

    def lines(self, launched: LaunchedLog, *, is_over: bool = False) -> None:
        """Print what a launched system has printed since the last time."""
        for line in launched.new_lines(is_over=is_over):
            entry = {"run_id": self._run_id, "event": "printed", "system": launched.label}
            self._print({**entry, "message": line}, f"{launched.label}: {line}")

    def _print(self, entry: Entry, line: str) -> None:
        with self._lock:
            print(json_text(entry, None) if self._is_json else line, flush=True)
