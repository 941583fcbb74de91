"""Parser of the command line: every command by name, and mistakes as one line each."""

import argparse
import difflib
import sys
from collections.abc import Container, Sequence
from functools import partial
from importlib import import_module
from typing import Any, NoReturn

from cbench_server import __version__
from cbench_server.cli.exits import USAGE, complaint, did_you_mean
from cbench_server.cli.outcome import add_shorthands

# Each is a module in commands/, which adds its flags and its handler.
COMMANDS = {
    "run": "Evaluate one or more systems on one or more datasets",
    "memory": "Evaluate memory systems on conversations",
    "init": "Write a system to begin with, its test and its run file, in one of six languages",
    "try": "Send one example through a system and see what it does; nothing is stored",
    "runs": "List stored runs, delete, prune, archive, pin or salvage some",
    "show": "Show a run, its rows or one example of it",
    "watch": "Follow a run to its end",
    "logs": "Show the events of a run, and what the systems printed that it launched",
    "attach": "Follow a run that was left to a daemon, and check the gate of its run file",
    "cancel": "Stop a run and keep its rows",
    "resume": "Continue a cancelled or failed run where it stopped",
    "score": "Score one pair of examples",
    "rescore": "Rescore the stored answers of a run as a new run, without calling any system",
    "compare": "Compare systems example by example",
    "gate": "Check a run against policies, for CI: the exit code is 0 if all hold, else 1",
    "judge": "Test a judge on answers whose verdict is known",
    "model": "Fetch and serve a small real model on this machine, for readers and judges",
    "report": "Write a run as one page to open in a browser",
    "export": "Write a run with its rows for other programs, or all of it for another store",
    "import": "Read a run from a file that `cbench export --format run` wrote",
    "adapt": "Serve what another library has, such as a LangChain retriever, as a system",
    "config": "Write, check and show run files",
    "datasets": "List datasets",
    "evaluators": "List evaluators",
    "metrics": "List metrics",
    "systems": "List built-in and attached systems",
    "store": "Copy runs into another store, in a file or in PostgreSQL, or check all of one",
    "tokens": "Make, list and revoke the tokens of a daemon",
    "doctor": "Check the setup and say how to fix it",
    "completion": "Print what bash, zsh or fish needs to complete commands, flags and names",
    "conformance": "Check that a process keeps the contract, in any language",
}

# Of all others, an empty value is that of a variable which is not set: `--server "$ADDRESS"` would
# run here, and `runs delete "$RUN"` would take any run.
_MAY_BE_EMPTY = ("system_prompt", "question", "line", "program")


class Parser(argparse.ArgumentParser):
    """Reports a mistake in one line, with the nearest thing that would have been right."""

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **settings)
        self.set_defaults(handler=None, parser=self)

    def error(self, message: str) -> NoReturn:
        end = "" if message.endswith((".", "?")) else "."
        self.exit(USAGE, f"{complaint(message)}{end} See: {self.prog} --help\n")

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        # Of a command's own words it takes care itself, and names the one.
        words = arg_strings[:1] if action.nargs == argparse.PARSER else arg_strings
        if "" in words and action.dest not in _MAY_BE_EMPTY:
            name = "/".join(action.option_strings) or str(action.metavar or action.dest)
            self.error(f"argument {name}: the value is empty. Is a variable unset?")
        return super()._get_values(action, arg_strings)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            what = (
                "command" if isinstance(action.choices, dict) else "/".join(action.option_strings)
            )
            self.refuse(what, str(value), [*map(str, action.choices)])

    def refuse(self, what: str, value: str, choices: Sequence[str]) -> NoReturn:
        """End with the choice that was probably meant, or with all of them."""
        hint = did_you_mean(value, choices) or f" Known: {', '.join(choices)}."
        self.error(f'no {what} "{value}".{hint}')


def build_parser(words: Container[str] = COMMANDS) -> Parser:
    """Build the tree; only commands among `words` are imported and get their flags."""
    parser = Parser(
        prog="cbench",
        description="Evaluate systems that change an LLM's context, in any language.",
        epilog="Start with: cbench run --builtin truncate-head --dataset mini-qa",
    )
    parser.add_argument(
        "--version", action="version", version=f"cbench {__version__}", help="print the version"
    )
    parser.set_defaults(build=build_parser)  # for completion, which needs all commands
    commands = parser.add_subparsers(metavar="COMMAND", dest="command")
    for name, summary in COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=f"{summary}.")
        if name in words:
            import_module(f"cbench_server.cli.commands.{name}").add_flags(command)
            add_shorthands(command)
    return parser


# What other tools call it.
_ELSEWHERE = {
    "concurrency": "--max-workers",
    "file": "--dataset",
    "format": "--output",
    "jobs": "--max-workers",
    "limit": "--max-examples",
    "parallel": "--max-workers",
    "samples": "--max-examples",
    "workers": "--max-workers",
}


def _nearest_flag(chosen: Parser, given: str) -> str:
    """Return a hint at the flag that may be meant; the dashes, which all have, make none alike."""
    known = {flag.lstrip("-"): flag for each in chosen._actions for flag in each.option_strings}
    name = given.partition("=")[0].lstrip("-")
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.65)
    flag = _ELSEWHERE.get(name) or (known[near[0]] if near else "")
    return f' Did you mean "{flag}"?' if flag in known.values() else ""


def parse(argv: list[str]) -> argparse.Namespace:
    """Parse a command line, or exit with a message."""
    parser = build_parser(argv)
    for place, word in enumerate(argv, 1):
        # Python keeps bytes that are no text as characters which nothing can encode.
        if any("\ud800" <= character <= "\udfff" for character in word):
            parser.error(f'argument {place}, "{word}", is not UTF-8')
    args, extra = parser.parse_known_args(argv)
    if extra:
        chosen: Parser = args.parser
        kind = "flag" if extra[0].startswith("-") else "argument"
        chosen.error(f'unknown {kind} "{extra[0]}".{_nearest_flag(chosen, extra[0])}')
    if not args.handler:
        args.parser.print_help(sys.stderr)
        sys.exit(USAGE)
    args.given = partial(given_flags, argv)
    return args


def given_flags(argv: list[str]) -> dict[str, Any]:
    """Return what a command line says itself, without any defaults."""
    parser = build_parser(argv)
    _forget_defaults(parser)
    return vars(parser.parse_known_args(argv)[0])


def _forget_defaults(parser: argparse.ArgumentParser) -> None:
    parser._defaults.clear()
    for action in parser._actions:
        action.default = argparse.SUPPRESS
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                _forget_defaults(each)
