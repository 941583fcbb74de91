"""`cbench config`: write, check and show run files."""

import argparse
import sys
from pathlib import Path
from typing import Any

from cbench_server.cli import options
from cbench_server.cli.commands import memory, run
from cbench_server.cli.exits import OK, USAGE, UsageError, explain
from cbench_server.cli.outcome import add_json, give, tell
from cbench_server.texts.grid import printable_lines

_FILE = "run.toml"
_EXAMPLES = """\
examples:
  cbench config init
  cbench config check run.toml
  cbench config show --config run.toml --max-examples 20
  cbench config schema > run-file.schema.json
"""


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the actions of `cbench config`."""
    parser.epilog = _EXAMPLES
    actions = parser.add_subparsers(metavar="ACTION", dest="action", required=True)
    init = options.add_action(actions, "init", write, "Write a run file to begin with")
    init.add_argument("file", metavar="FILE", nargs="?", default=_FILE, help=f"(default: {_FILE})")
    init.add_argument(
        "--memory", action="store_true", help="one for cbench memory run instead of cbench run"
    )
    add_json(init)
    check = options.add_action(
        actions, "check", check_files, "Check run files; every mistake has its line"
    )
    check.add_argument("files", metavar="FILE", nargs="*", default=[_FILE])
    add_json(check)
    show = options.add_action(
        actions, "show", show_file, "Print what a run file and flags of cbench run ask for together"
    )
    run.add_flags(show)
    show.usage = "cbench config show --config FILE [flags of cbench run]"
    show.epilog = None
    show.set_defaults(handler=show_file)
    options.add_action(actions, "schema", print_schema, "Print the JSON Schema of run files")


def write(args: argparse.Namespace) -> int:
    """Write a file that works as it is, and none over another."""
    from cbench_server.cli.run_files.starting import starting_file

    path = Path(args.file)
    kind = "memory" if args.memory else "process"
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(starting_file(kind, args.file))
    except FileExistsError:
        raise UsageError(f"{path} is there already, and is not overwritten.") from None
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}.") from error
    command = "cbench memory run" if args.memory else "cbench run"
    todo = f"{command} --config {path}"
    tell(args, {"file": str(path), "next": todo}, f"wrote {path}; run it with: {todo}")
    return OK


def check_files(args: argparse.Namespace) -> int:
    """Check each file, print each mistake on a line, and return whether there was none."""
    found: list[dict[str, Any]] = []
    lines = []
    for name in args.files:
        mistakes, unchecked = _checked(name, type(args.parser))
        found.append({"file": name, "mistakes": mistakes.splitlines(), "unchecked": unchecked})
        if mistakes and args.output != "json":
            print(printable_lines(mistakes), file=sys.stderr)
        if not mistakes:
            lines += [f"{name}: good", *(f"{name}: not checked: {each}" for each in unchecked)]
    give(args, found, "\n".join(lines))
    return USAGE if any(each["mistakes"] for each in found) else OK


def _checked(name: str, parser: type[argparse.ArgumentParser]) -> tuple[str, list[str]]:
    """Return the mistakes of a file, and what cannot be checked before a run."""
    from cbench_server.cli.run_files.checking import check_file

    def make(document: dict[str, Any]) -> argparse.ArgumentParser:
        made = parser(prog="cbench")
        (memory if document.get("kind") == "memory" else run).add_flags(made)
        return made

    try:
        return "", check_file(name, make)
    except Exception as error:
        told = explain(error)
        if told is None:
            raise
        return told[1], []


def show_file(args: argparse.Namespace) -> int:
    """Print the file and the flags together, as a file."""
    from cbench_server.cli.run_files.arguments import fill_in
    from cbench_server.cli.run_files.asked import document_asked
    from cbench_server.cli.run_files.reading import read_document
    from cbench_server.cli.run_files.writing import to_toml

    if not (args.config or args.repeat_last):
        raise UsageError("name a run file with --config FILE. Write one with: cbench config init")
    if args.config:
        args.kind = read_document(args.config).get("kind", "process")
    fill_in(args)
    document, remarks = document_asked(args)
    give(args, document, to_toml(document, remarks).removesuffix("\n"))
    return OK


def print_schema(_: argparse.Namespace) -> int:
    """Print the schema."""
    from cbench_server.cli.run_files.json_schema import json_schema
    from cbench_server.cli.screen import print_json

    print_json(json_schema())
    return OK
