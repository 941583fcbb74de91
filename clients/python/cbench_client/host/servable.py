"""Servable objects, as type checkers see them: what `serve` and `attach` take."""

from collections.abc import Callable, Iterable
from typing import Any, Protocol


class Processes(Protocol):
    """A system: it has `process`."""

    @property
    def process(self) -> Callable[..., Any]:
        """Turn one example into another."""


class Remembers(Protocol):
    """A memory system: it has `ingest` and `query`."""

    @property
    def ingest(self) -> Callable[..., Any]:
        """Remember turns."""

    @property
    def query(self) -> Callable[..., Any]:
        """Answer from what is remembered."""


class Scores(Protocol):
    """An evaluator: it has `score`."""

    @property
    def score(self) -> Callable[..., Any]:
        """Compare a pair."""


Servable = Processes | Remembers | Scores | Callable[..., Any]
"""An object, a function, or a class of memory systems."""

Servables = Servable | Iterable[Servable]
