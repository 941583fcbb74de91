"""Recipe for an equal evaluator in another process."""

import importlib
import sys
from typing import cast

import msgspec

from cbench_server.contract import info_of
from cbench_server.types import Evaluator


class Recipe(msgspec.Struct, array_like=True, frozen=True):
    """An importable class and what to call it with."""

    evaluator: str
    """The evaluator's name, for messages."""
    module: str
    class_name: str
    options: bytes
    """A packed map; packed, so that equal recipes are equal and can be cached."""
    runs_programs: bool = False
    """Whether it runs programs of systems, and so belongs where they can be locked in."""


def recipe_of(evaluator: Evaluator) -> Recipe | None:
    """Return how to rebuild an evaluator, or None if it would not be the same.

    Its class must be importable, and the evaluator must either have no state
    or carry the keyword arguments of its constructor in `options`.
    """
    kind = type(evaluator)
    module = sys.modules.get(kind.__module__)
    # Importing __main__ elsewhere would run the user's script again.
    if kind.__module__ == "__main__" or getattr(module, kind.__qualname__, None) is not kind:
        return None
    said = info_of(evaluator)
    options = said.options
    if options is None:
        if kind.__init__ is not object.__init__ or getattr(evaluator, "__dict__", None):
            return None
        options = {}
    try:
        packed = msgspec.msgpack.encode(options, order="sorted")
    except (TypeError, ValueError, OverflowError):
        return None
    return Recipe(evaluator.name, kind.__module__, kind.__qualname__, packed, said.runs_programs)


def build(recipe: Recipe) -> Evaluator:
    """Make the evaluator; raises what its import or constructor raises."""
    kind = getattr(importlib.import_module(recipe.module), recipe.class_name)
    return cast(Evaluator, kind(**msgspec.msgpack.decode(recipe.options)))
