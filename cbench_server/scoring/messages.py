"""Messages between the daemon and its worker programs, as MessagePack."""

from typing import Any

import msgspec

from cbench_server.scoring.recipe import Recipe


class Request(msgspec.Struct, array_like=True):
    """One pair to score."""

    recipe: Recipe
    timeout: float
    """Seconds after which the worker ends itself, in case there is no daemon left to end it."""
    original: dict[str, Any]
    processed: dict[str, Any]


class Reply(msgspec.Struct, array_like=True):
    """What came of it: scores, or what was raised."""

    scores: dict[str, float] = {}
    details: dict[str, Any] = {}
    error: str = ""
    stack_trace: str = ""
    built: bool = True
    """False if there was no evaluator to ask."""
