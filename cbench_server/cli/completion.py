"""Suggestions for a command line that is being typed: commands, flags, values and live names."""

import argparse
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from cbench_server.cli import live_names, option_names

Build = Callable[[list[str]], argparse.ArgumentParser]
"""Makes the parser, with the flags of the commands among some words."""
_ONE_WORD = re.compile(r"[\w@%+=:,./-]+")


def suggest(words: list[str], build: Build) -> list[str]:
    """Return what the last of the words, which may be empty, can become.

    A shell puts it into the line as it is: of names that others have chosen, one with a `;` or
    `$(` in it would be a command.
    """
    return [each for each in _suggested(words, build) if _ONE_WORD.fullmatch(each)]


def _suggested(words: list[str], build: Build) -> list[str]:
    *before, current = words or [""]
    parser, rest = _parser_of(before, build)
    flag, equals, beginning = current.partition("=")
    if equals and (action := _flag(parser, flag)) is not None and _takes_value(action):
        found = _starting(_values(action, before, beginning), beginning)
        return [f"{flag}={each}" for each in found]
    if rest and (action := _flag(parser, rest[-1])) is not None and _takes_value(action):
        return _starting(_values(action, before, current), current)
    if current.startswith("-"):
        return _starting(_flags(parser, rest), current)
    return _starting(_positional(parser, before), current)


def split_line(line: str) -> list[str]:
    """Return the words of a line up to the cursor, without the command itself."""
    try:
        words = shlex.split(line)
    except ValueError:  # a quote that is still open
        words = line.split()
    if not line or line[-1].isspace():
        words.append("")
    return words[1:]


def _parser_of(before: list[str], build: Build) -> tuple[argparse.ArgumentParser, list[str]]:
    """Return the parser of the command or action that is typed, and the words after its name."""
    parser = build(before[:1])
    rest = before
    for place, word in enumerate(before):
        actions = _actions(parser)
        if actions is not None and word in actions.choices:
            parser, rest = actions.choices[word], before[place + 1 :]
    return parser, rest


def _actions(
    parser: argparse.ArgumentParser,
) -> "argparse._SubParsersAction[argparse.ArgumentParser] | None":
    found = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    return found[0] if found else None


def _flag(parser: argparse.ArgumentParser, word: str) -> argparse.Action | None:
    return parser._option_string_actions.get(word)


def _takes_value(action: argparse.Action) -> bool:
    return action.nargs != 0


def _flags(parser: argparse.ArgumentParser, rest: list[str]) -> Iterator[str]:
    """Yield the long flags that may still come: those given already only if they repeat."""
    for action in parser._actions:
        again = isinstance(action, argparse._AppendAction) or isinstance(action.default, list)
        if action.help != argparse.SUPPRESS and (again or not {*action.option_strings} & {*rest}):
            yield from [flag for flag in action.option_strings if flag.startswith("--")]


def _positional(parser: argparse.ArgumentParser, before: list[str]) -> Iterator[str]:
    for action in parser._actions:
        if action.option_strings:
            continue
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices
        else:
            yield from _values(action, before, "")


def _values(action: argparse.Action, before: list[str], beginning: str) -> Iterable[str]:
    if action.choices is not None:
        return [str(each) for each in action.choices]
    flag = next((each for each in action.option_strings if each.startswith("--")), "")
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    find = _BY_FLAG.get(flag) or _BY_METAVAR.get(metavar)
    found: list[str] = []
    with suppress(Exception):  # no suggestion is worth a message in the middle of a line
        if flag in _BY_BEGINNING:
            found.extend(_BY_BEGINNING[flag](before, beginning))
        elif find is not None:
            found.extend(find(before))
    return found


def _starting(candidates: Iterable[str], beginning: str) -> list[str]:
    return [each for each in dict.fromkeys(candidates) if each.startswith(beginning)]


def _registered(kind: str) -> Callable[[list[str]], list[str]]:
    def names(before: list[str]) -> list[str]:
        from cbench_server.registry import registry

        return registry.list(kind)

    return names


def _builtins(before: list[str]) -> list[str]:
    return _registered("memory_system" if before[:1] == ["memory"] else "system")(before)


def _formats(before: list[str]) -> list[str]:
    from cbench_server.registry import registry

    own = ["run"] if "export" in before else ["table"]
    return [*own, *registry.list("reporter")]


_BY_FLAG: dict[str, Callable[[list[str]], Iterable[str]]] = {
    "--dataset": _registered("dataset"),
    "--evaluator": _registered("evaluator"),
    "--metric": _registered("metric"),
    "--builtin": _builtins,
    "--output": _formats,
    "--format": _formats,
    "--attached": live_names.attached,
}
# Those that depend on how the value begins.
_BY_BEGINNING: dict[str, Callable[[list[str], str], Iterable[str]]] = {
    "--option": option_names.of_systems,
    "--sweep": option_names.of_systems,
    "--evaluator-option": option_names.of_evaluators,
}
_BY_METAVAR: dict[str, Callable[[list[str]], Iterable[str]]] = {
    "RUN": live_names.runs,
    "NAME[:CONFIG]": _registered("dataset"),
}
