"""What a command says: sentences on stderr, what was asked for on stdout, or JSON there."""

import argparse
import sys
from typing import Any


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add `--json` to a command that has no `--output`."""
    parser.add_argument(
        "--json",
        dest="output",
        action="store_const",
        const="json",
        default="text",
        help="say what was done as JSON on stdout; docs/json.md",
    )


def is_quiet(args: argparse.Namespace) -> bool:
    """Whether `--quiet` was given, before an action or after it."""
    return bool(vars(args).get("quiet"))


def inform(args: argparse.Namespace, sentence: str) -> None:
    """Print a line for a person on stderr, unless they want quiet."""
    from cbench_server.texts.grid import printable

    if not is_quiet(args):
        print(printable(sentence), file=sys.stderr)


def tell(args: argparse.Namespace, document: Any, *sentences: str) -> None:
    """Say what was done: `document` as JSON where that is wanted, else the sentences."""
    from cbench_server.cli.screen import print_json

    if args.output == "json":
        print_json(document)
        return
    for sentence in sentences:
        inform(args, sentence)


def give(args: argparse.Namespace, document: Any, text: str) -> None:
    """Print what was asked for on stdout: `document` where JSON is wanted, else the text."""
    from cbench_server.cli.screen import print_json
    from cbench_server.texts.grid import printable_lines

    if args.output == "json":
        print_json(document)
    elif text:
        print(printable_lines(text))


def add_shorthands(parser: argparse.ArgumentParser) -> None:
    """Add `--json` and `--quiet` to a command and its actions, where they are not there yet."""
    flags = {flag: action for action in parser._actions for flag in action.option_strings}
    output = flags.get("--output")
    if output is not None and "--json" not in flags and "json" in (output.choices or ("json",)):
        parser.add_argument(
            "--json",
            dest="output",
            action="store_const",
            const="json",
            default=argparse.SUPPRESS,
            help="the same as --output json; docs/json.md",
        )
    if "--quiet" not in flags:
        parser.add_argument(
            "--quiet",
            action="store_true",
            default=argparse.SUPPRESS,
            help="print nothing on stderr but complaints",
        )
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                add_shorthands(each)
