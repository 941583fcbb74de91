"""`python -m cbench_client.adapters NAME MODULE:OBJECT`: serve what an adapter makes."""

import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from inspect import isfunction
from pathlib import Path
from typing import Any

from cbench_client import serve
from cbench_client.adapters.catalog import ADAPTERS, adapter
from cbench_client.adapters.library import MissingLibrary

_USAGE = "usage: python -m cbench_client.adapters NAME MODULE:OBJECT [HOST:PORT]"


class BadAdapter(Exception):
    """What was asked for cannot be served; the message says why."""


def made(name: str, place: str) -> Any:
    """Return what an adapter makes of an object that a module of the user has."""
    known = [each.name for each in ADAPTERS if each.place]
    if name not in known:
        near = get_close_matches(name, known, 1, 0.5)
        hint = f'Did you mean "{near[0]}"?' if near else f"There are: {', '.join(known)}."
        raise BadAdapter(f'there is no adapter "{name}". {hint}')
    module, colon, attribute = place.partition(":")
    if not colon or not attribute:
        raise BadAdapter(
            f'"{place}" names no object; write it as MODULE:NAME, such as my_rag:build.'
        )
    chosen = adapter(name)
    chosen.prepare()
    given = _given(module, attribute)
    if not chosen.takes_such(given):
        raise BadAdapter(
            f"{place} is {_kind(given)}, and {name} is made from {chosen.takes}"
            f" (with {', '.join(chosen.methods)})."
        )
    return chosen.make(given)


def _given(module: str, attribute: str) -> Any:
    sys.path.insert(0, str(Path.cwd()))
    try:
        return vars(import_module(module))[attribute]
    except ModuleNotFoundError as error:
        if error.name is None or module == error.name or module.startswith(f"{error.name}."):
            hint = f"Start this where {module}.py is, or set PYTHONPATH."
        else:
            hint = f"{module} imports it. Install it for {sys.executable}."
        raise BadAdapter(f"{error}. {hint}") from error
    except KeyError:
        raise BadAdapter(f"{module} has no {attribute}.") from None


def _kind(given: Any) -> str:
    if isinstance(given, type):
        return f"the class {given.__name__}"
    return "a function" if isfunction(given) else f"an object of {type(given).__name__}"


def main(arguments: Sequence[str]) -> int:
    """Serve until told to end."""
    if len(arguments) not in (2, 3):
        print(_USAGE, file=sys.stderr)
        return 2
    try:
        system = made(arguments[0], arguments[1])
    except (BadAdapter, MissingLibrary) as error:
        print(error, file=sys.stderr)
        return 2
    serve(system, *arguments[2:])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
