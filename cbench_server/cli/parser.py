"""The flags of every command. Importing this costs next to nothing: no command is loaded."""

import argparse
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn

from cbench_server.cli.exits import EXIT_CODES, USAGE, did_you_mean
from cbench_server.version import __version__

DEFAULT_SERVER_PORT = 50051


class Parser(argparse.ArgumentParser):
    """Reports a mistake in one line, with the nearest thing that would have been right."""

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **settings)

    def error(self, message: str) -> NoReturn:
        end = "" if message.endswith((".", "?")) else "."
        self.exit(USAGE, f"cbench: {message}{end} See: {self.prog} --help\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            what = (
                "command" if isinstance(action.choices, dict) else "/".join(action.option_strings)
            )
            hint = did_you_mean(str(value), map(str, action.choices))
            known = "" if hint else f" Known: {', '.join(map(str, action.choices))}."
            self.error(f'no {what} "{value}".{hint}{known}')


Subparsers = Any  # argparse keeps the type to itself


def build_parser() -> Parser:
    """Build the whole tree."""
    from cbench_server.cli import (
        comparison_flags,
        conformance_flags,
        flags,
        report_flags,
        rescore_flags,
    )

    parser = Parser(
        prog="cbench",
        description="Evaluate systems that change an LLM's context, in any language.",
        epilog="Start with: cbench run --builtin truncate-head --dataset mini-qa",
    )
    parser.add_argument(
        "--version", action="version", version=f"cbench {__version__}", help="print the version"
    )
    parser.set_defaults(handler="", parser=parser)
    commands = parser.add_subparsers(metavar="COMMAND", dest="command")
    flags.add_run(commands)
    flags.add_memory(commands)
    flags.add_runs(commands)
    flags.add_show(commands)
    flags.add_watch(commands)
    flags.add_cancel(commands)
    flags.add_resume(commands)
    flags.add_score(commands)
    rescore_flags.add_rescore(commands, flags.add_server_flags)
    comparison_flags.add_compare(commands, flags.add_server_flags)
    comparison_flags.add_gate(commands, flags.add_server_flags)
    report_flags.add_report(commands, flags.add_server_flags)
    report_flags.add_export(commands, flags.add_server_flags)
    flags.add_components(commands)
    flags.add_doctor(commands)
    conformance_flags.add_conformance(commands)
    return parser


def command(subparsers: Subparsers, name: str, handler: str, summary: str, **settings: Any) -> Any:
    """Add a command; `handler` is `module:function` in this package, loaded when it is run."""
    parser = subparsers.add_parser(name, help=summary, description=f"{summary}.", **settings)
    parser.set_defaults(handler=handler, parser=parser)
    return parser


def load_handler(args: argparse.Namespace) -> Callable[[argparse.Namespace], int]:
    """Import the function that carries out the chosen command."""
    module, _, function = args.handler.partition(":")
    handler: Callable[[argparse.Namespace], int] = getattr(
        import_module(f"cbench_server.cli.{module}"), function
    )
    return handler


def parse(argv: list[str]) -> argparse.Namespace:
    """Parse a command line, or exit with a message."""
    args, extra = build_parser().parse_known_args(argv)
    if extra:
        chosen: Parser = args.parser
        known = [flag for action in chosen._actions for flag in action.option_strings]
        hint = did_you_mean(extra[0].partition("=")[0], known)
        kind = "flag" if extra[0].startswith("-") else "argument"
        chosen.error(f'unknown {kind} "{extra[0]}".{hint}')
    if not args.handler:
        args.parser.print_help(sys.stderr)
        sys.exit(USAGE)
    return args


def exit_code_help() -> str:
    """Describe the exit codes, for --help and the docs."""
    return "\n".join(["exit codes:", *(f"  {code:<4}{why}" for code, why in EXIT_CODES.items())])
