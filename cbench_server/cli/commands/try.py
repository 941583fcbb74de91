"""`cbench try`: one example through a system, before and after; nothing is stored."""  # noqa: N999 - the command has this name

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cbench_server.cli import options
from cbench_server.cli.commands import run
from cbench_server.cli.connect import system_tls
from cbench_server.cli.exits import FAILED, OK, UsageError
from cbench_server.cli.files import read_text
from cbench_server.cli.local_models import local_models
from cbench_server.cli.run_files.arguments import fill_in
from cbench_server.cli.screen import is_coloured, print_json, render_fields
from cbench_server.texts import numbers
from cbench_server.texts.grid import printable, printable_lines

if TYPE_CHECKING:
    from cbench_server.results import EvalRow
    from cbench_server.spec import RunSpec

_EXAMPLES = """\
examples:
  cbench try --builtin truncate-head
  cbench try --launch "python my_system.py" --text letter.txt --question "Who signed it?"
  cbench try --exec ./shorten.sh --dataset mini-qa --example mini-qa-003 --message
"""
_DATASET = "long-notes"
_RECORDER = "cbench-try-recorder"


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `cbench try`: those of `cbench run`, and which example."""
    run.add_flags(parser)
    parser.usage = "cbench try --system TARGET [--text FILE | --dataset NAME] [flags of cbench run]"
    parser.epilog = f"{_EXAMPLES}\n{options.EXIT_CODE_HELP}"
    parser.set_defaults(handler=try_once)
    group = parser.add_argument_group("the one example")
    group.add_argument(
        "--text", metavar="FILE", help="its context, or - for stdin, in place of a --dataset"
    )
    group.add_argument("--question", metavar="TEXT", default="", help="the question to --text")
    group.add_argument(
        "--example",
        metavar="ID",
        help=f"which of the dataset (default: the first of {_DATASET})",
    )
    group.add_argument(
        "--message", action="store_true", help="also print exactly what the system is sent"
    )


def try_once(args: argparse.Namespace) -> int:
    """Send one example, and print what came back."""
    from cbench_client import BenchClient
    from cbench_server.cli.connect import server_of
    from cbench_server.cli.follow import follow
    from cbench_server.cli.spec import check_systems
    from cbench_server.cli.stored_runs import full_rows_of
    from cbench_server.daemon.embedded import embedded

    fill_in(args)
    # They are about many examples.
    args.controls, args.detach = "none", False
    if server_of(args):
        raise UsageError("cbench try works without a daemon. Leave out --server.")
    _refuse_other_output(args)
    check_systems(args)
    if args.message and any(kind in ("proxy", "predictions") for kind, _ in args.systems):
        raise UsageError("--message shows what a system is sent; a --proxy is sent a prompt.")
    recorder = _Recorder()
    with (
        tempfile.TemporaryDirectory(prefix="cbench-try-") as folder,
        local_models(args),
        run.launching_all(args) as launches,
        embedded(
            imports=args.imports,
            home=folder,
            data_dir=args.data_dir,
            sandbox=args.sandbox,
            evaluates=True,
        ) as target,
        BenchClient(target) as client,
    ):
        _choose(args, Path(folder))
        spec = run.spec_of(client, args, launches, system_tls(args))
        spec |= {"anchors": False, "asked_again": 0, "timed_rows": 1}
        if args.message:
            recorder.register()
            spec["systems"].append({"builtin": _RECORDER, "name": _RECORDER})
        finished = follow(client, client.evaluate(spec), quiet=True, launches=launches)
        systems = [name for name in finished.systems if name != _RECORDER]
        found = [pair for name in systems for pair in full_rows_of(client, finished.run_id, name)]
    if not found:
        raise UsageError(finished.failure.message if finished.failure else "there was no example.")
    if args.output == "json":
        _print_json(found, recorder, finished.spec)
    else:
        _print(found, recorder, finished.spec)
    return FAILED if any(row.failure for row, _ in found) else OK


class _Recorder:
    """A system that keeps what every system of the run is sent."""

    name = _RECORDER

    def __init__(self) -> None:
        self.example: dict[str, Any] = {}
        self.instruction = ""

    def register(self) -> None:
        """Have it found by the daemon in this process."""
        from cbench_server.registry import register_system

        register_system(_RECORDER, self)

    def process(self, example: dict[str, Any], instruction: str = "") -> dict[str, Any]:
        """Keep the example."""
        self.example, self.instruction = dict(example), instruction
        return self.example

    def told(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        """Return the message under its name, nothing if it was not asked for."""
        return {"message": self.message(sent)} if self.example else {}

    def message(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a system with these options was sent."""
        return {"example": self.example, "options": dict(sent), "instruction": self.instruction}


def _refuse_other_output(args: argparse.Namespace) -> None:
    if args.output not in ("table", "json"):
        raise UsageError(f"cbench try prints a table or json, not {args.output}.")


def _choose(args: argparse.Namespace, folder: Path) -> None:
    """Make the flags name one example."""
    if args.text is not None:
        are_flags = args.datasets and not (args.filed and args.filed.datasets)
        if are_flags or args.example:
            raise UsageError("give --text, or --dataset and --example.")
        example = {"id": args.text, "context": read_text(args.text), "question": args.question}
        path = folder / "text.jsonl"
        path.write_text(json.dumps(example) + "\n")
        args.datasets = [str(path)]
    elif args.question:
        raise UsageError("--question belongs to --text; examples of a dataset have their own.")
    args.datasets = (args.datasets or [_DATASET])[:1]
    if args.example:
        args.where = [*args.where, ("id", args.example)]
    args.max_examples = 1
    if args.filed is not None:
        _choose_of_file(args)


def _choose_of_file(args: argparse.Namespace) -> None:
    """Make the settings of the file's first dataset name one example, too."""
    entries = args.filed.datasets[:1] if args.text is None else []
    wanted = {"id": args.example} if args.example else {}
    args.filed.datasets = [
        {**entry, "max_examples": 1, "where": {**entry.get("where", {}), **wanted}}
        for entry in entries
    ]


def _print_json(
    found: "list[tuple[EvalRow, dict[str, Any] | None]]", recorder: _Recorder, spec: "RunSpec"
) -> None:
    from cbench_server.results import row_to_dict

    print_json(
        [
            {
                **row_to_dict(row),
                "original": original or {},
                **recorder.told({**spec.options, **each.options}),
            }
            for (row, original), each in zip(found, spec.systems, strict=False)
        ]
    )


def _print(
    found: "list[tuple[EvalRow, dict[str, Any] | None]]", recorder: _Recorder, spec: "RunSpec"
) -> None:
    for place, (row, original) in enumerate(found):
        if place:
            print()
        print(printable(f"{row.system} on {row.example_id} of {row.dataset}"))
        if recorder.example:
            print("it was sent:")
            print(render_fields(recorder.message({**spec.options, **spec.systems[place].options})))
        print(_told(row, original or {}))


def _told(row: "EvalRow", original: Mapping[str, Any]) -> str:
    lines = []
    if row.failure:
        lines.append(f"failed ({row.failure.reason}): {printable_lines(row.failure.message)}")
        if row.failure.stack_trace:
            lines.append(printable_lines(row.failure.stack_trace))
    for name, value in (row.processed or {}).items():
        if value != original.get(name):
            lines.append(f"{printable(name)}:\n{_difference(original.get(name), value)}")
    if row.processed is not None and not lines:
        lines.append("changed nothing")
    for name, score in row.scores.items():
        mark = "  (the dataset's own)" if name == row.score_name else ""
        lines.append(f"{printable(name)} = {numbers.plain(score)}{mark}")
    lines.append(
        f"{row.input_tokens:,} → {row.output_tokens:,} tokens, {numbers.seconds(row.call_seconds)}"
    )
    return "\n".join(lines)


def _difference(before: Any, after: Any) -> str:
    from cbench_server.results import strict_json
    from cbench_server.texts.word_diff import differences, drawn, shortened

    old, new = (
        "" if value is None else value if isinstance(value, str) else strict_json(value, None)
        for value in (before, after)
    )
    pieces = differences(printable_lines(old), printable_lines(new))
    in_colour = is_coloured(sys.stdout)
    return drawn(shortened(pieces), in_colour=in_colour)
