"""Generator of docs/cli.md from the flags of `cbench`; --check only compares."""

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from cbench_server.cli.exits import EXIT_CODES
from cbench_server.cli.parser import build_parser

PAGE = Path(__file__).parent.parent / "docs" / "cli.md"

_HEAD = """\
# The command line

<!-- Written by scripts/gen_cli_docs.py from the code; do not edit. -->

`cbench` talks to the daemon named by `--server` or `CBENCH_SERVER`. Without one it runs a daemon
inside itself, on the same store, so a run made either way is found by the other.

Results go to stdout, progress and complaints to stderr. With `--output json` stdout is strict
JSON: an infinite or undefined number is `null`. A run is named by its id, by the beginning of its
id, or as `last`.
"""

_SHARED = "daemon"

_VARIABLES = {
    "CBENCH_SERVER": "the daemon to use, like `--server`",
    "CBENCH_TOKEN": "the token the daemon wants, like `--token`",
    "CBENCH_HOME": "where runs are kept, without `--server`",
    "OPENAI_API_KEY": "sent to `--proxy`, `--reader` and `--judge-url`, without `--server`",
    "CBENCH_DEBUG": "set to 1 to see where in the code an error arose",
}


def page() -> str:
    """Render the whole page."""
    parts = [_HEAD, "## Exit codes\n", "| Code | Meaning |\n|---|---|"]
    parts[-1] += "".join(f"\n| {code} | {meaning} |" for code, meaning in EXIT_CODES.items())
    parts.append("\n## Environment\n")
    parts.append("\n".join(f"- `{name}`: {text}" for name, text in _VARIABLES.items()))
    parsers = list(_parsers(build_parser()))
    parts += [_section(parser) for parser in parsers]
    parts.append(_shared_flags(parsers))
    return "\n".join(parts) + "\n"


# argparse's own help is laid out differently by every version of Python.
def _section(parser: argparse.ArgumentParser) -> str:
    actions = [action for action in parser._actions if action.help != argparse.SUPPRESS]
    commands = [action for action in actions if isinstance(action, argparse._SubParsersAction)]
    positional = [a for a in actions if not a.option_strings and a not in commands]
    usage = [parser.prog, *(f"{a.metavar}{' ...' if a.nargs == '+' else ''}" for a in positional)]
    usage += [f"[{a.metavar}]" if parser.prog != "cbench" else "COMMAND" for a in commands]
    lines = [f"\n## {parser.prog}\n", f"{parser.description}\n", f"    {' '.join(usage)} [flags]\n"]
    if positional:
        lines += [f"- `{action.metavar}`: {action.help}" for action in positional]
        lines.append("")
    for choice in (choice for action in commands for choice in action._choices_actions):
        name = f"{parser.prog} {choice.dest}"
        lines.append(f"- [{name}](#{name.replace(' ', '-')}): {choice.help}")
    if commands:
        lines.append("")
    for group in parser._action_groups:
        flags = [a for a in group._group_actions if a.option_strings and a.dest != "help"]
        if flags and group.title == _SHARED:
            lines.append(f"Further flags: [{_SHARED}](#{_SHARED.replace(' ', '-')})\n")
        elif flags:
            lines.append(_flags("flags" if group.title == "options" else str(group.title), flags))
    if parser.epilog:
        lines.append(f"```\n{parser.epilog.strip()}\n```\n")
    return "\n".join(lines).rstrip()


def _flags(title: str, flags: Iterable[argparse.Action]) -> str:
    lines = [f"| `{_flag(action)}` | {_cell(str(action.help))} |" for action in flags]
    return "\n".join([f"**{title}**\n\n| Flag | Meaning |\n|---|---|", *lines, ""])


def _shared_flags(parsers: Iterable[argparse.ArgumentParser]) -> str:
    groups = (group for parser in parsers for group in parser._action_groups)
    flags = next(group._group_actions for group in groups if group.title == _SHARED)
    return f"\n## {_SHARED}\n\n{_flags('flags', flags)}".rstrip()


def _flag(action: argparse.Action) -> str:
    names = ", ".join(action.option_strings)
    if action.nargs == 0:
        return names
    value = action.metavar or (
        "|".join(map(str, action.choices)) if action.choices else action.dest.upper()
    )
    return _cell(f"{names} {value}")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from _parsers(child)


def main() -> int:
    """Write the page, or compare it."""
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(page())
        return 0
    if PAGE.read_text() == page():
        return 0
    print(
        f"{PAGE.name} differs from the code; run: python scripts/gen_cli_docs.py", file=sys.stderr
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
