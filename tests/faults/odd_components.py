"""Components that try to exit, or whose exceptions and names cannot be written down.

A daemon that imports this has them.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from cbench_server.registry import (
    register_dataset,
    register_evaluator,
    register_metric,
    register_reporter,
    register_system,
)
from cbench_server.types import Assessment

NO_TEXT = "said \udcff"


class Mute(Exception):
    """Raises again when it is asked for its words."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


ERRORS = {"no-text": ValueError(NO_TEXT), "mute": Mute(), "endless": ValueError("x" * 5_000_000)}


EXITS: dict[str, BaseException] = {"exits": SystemExit(3), "interrupts": KeyboardInterrupt()}


class Raises:
    """Raises as an evaluator, where it is put, and as a metric."""

    def __init__(self, name: str, error: BaseException, placement: str = "inline") -> None:
        self.name, self.placement = name, placement
        self._error = error

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        raise self._error

    def compute(self, rows: Sequence[Any]) -> dict[str, float]:
        raise self._error


class Tells:
    """An evaluator that tells more than its score."""

    placement = "inline"

    def __init__(self, name: str, details: Any) -> None:
        self.name = name
        self._details = details

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> Assessment:
        return Assessment({self.name: 1.0}, self._details)


class Describes:
    """Raises when it is asked which version it is."""

    name = "describes"

    def __init__(self, error: BaseException) -> None:
        self._error = error

    @property
    def version(self) -> str:
        raise self._error

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return example


class Gives:
    """A metric that gives the same to every system, and further values to all of them."""

    def __init__(self, name: str, values: Any, further: Any = None) -> None:
        self.name = name
        self._values, self._further = values, further or {}

    def compute(self, rows: Sequence[Any]) -> Any:
        return self._values

    def across(self, summary: Any) -> Any:
        return self._further


def raised_now(error: BaseException) -> Any:
    """What makes a component, and does not."""
    raise error


def raised_at_the_second(error: BaseException) -> Iterator[dict[str, Any]]:
    """A dataset that breaks after its first example."""
    yield {"id": 1, "context": "Paris.", "question": "Paris?", "answer": "Paris"}
    raise error


def nested(depth: int) -> dict[str, Any]:
    """Values below as many names."""
    return {"deep": nested(depth - 1) if depth else 1.0}


for kind, raised in EXITS.items():
    register_metric(kind, Raises(kind, raised))
    register_dataset(kind, lambda error=raised: raised_at_the_second(error))
    register_dataset(f"{kind}-at-once", lambda error=raised: raised_now(error))
    register_system(kind, lambda error=raised: raised_now(error))
    register_system(f"{kind}-described", Describes(raised))
    register_evaluator(kind, lambda error=raised: raised_now(error))
    register_reporter(kind, lambda report, error=raised: raised_now(error))
for kind, raised in ERRORS.items():
    for placement in ("inline", "thread"):
        register_evaluator(f"{kind}-{placement}", Raises(f"{kind}-{placement}", raised, placement))
    register_metric(kind, Raises(kind, raised))
    register_dataset(kind, lambda error=raised: raised_at_the_second(error))
for name, details in {
    "told-no-text": {"why": NO_TEXT},
    "told-deep": nested(60),
    "told-huge-number": {"why": 2**70},
    "told-set": {"why": {1, 2}},
    "told-other-keys": {"why": {1: 2}},
    "told-endlessly": {"why": "x" * 20_000_000},
}.items():
    register_evaluator(name, Tells(name, details))
register_metric("no-key", Gives("no-key", {"k\udcff": 1.0}))
register_metric("deep", Gives("deep", nested(60)))
register_metric("across", Gives("across", {"own": 1.0}, {"truncate-tail": 1.0}))
register_metric("no-name", Raises("no-name\udcff", ERRORS["no-text"]))
