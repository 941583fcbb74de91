"""Applicability of scores: which ones an example can have, told from the original alone.

What a system returned has no say in it, so the rows that do not count are the
same for every system.
"""

from collections.abc import Callable, Sequence

from cbench_server.contract import info_of
from cbench_server.results import RETENTION
from cbench_server.texts.answers import references
from cbench_server.types import Evaluator, Example

Applies = Callable[[Example], bool]


class Applicability:
    """What the evaluators of one dataset can score, looked at once; `never` no example can have."""

    def __init__(self, evaluators: Sequence[Evaluator], never: tuple[str, ...] = ()) -> None:
        self._quick: list[tuple[Applies, tuple[str, ...]]] = []
        self._retention: tuple[Applies, tuple[str, ...]] | None = None
        self._never = never
        for evaluator in evaluators:
            names = tuple(score.name for score in info_of(evaluator).scores)
            check = (_test_of(evaluator), names)
            if RETENTION in names:
                self._retention = check
            elif names:
                self._quick.append(check)

    def missing(self, original: Example) -> tuple[str, ...]:
        """Name the scores that the original cannot have, but for those of context retention."""
        found = [name for applies, names in self._quick if not applies(original) for name in names]
        return (*self._never, *found)

    def missing_retention(self, original: Example) -> tuple[str, ...]:
        """Name those of context retention; has to search the whole context."""
        if self._retention is None:
            return ()
        applies, names = self._retention
        return () if applies(original) else names

    @property
    def retention(self) -> tuple[str, ...]:
        """The scores of context retention."""
        return self._retention[1] if self._retention else ()


def _test_of(evaluator: Evaluator) -> Applies:
    said = info_of(evaluator)
    applies, required = said.applies, said.required_fields
    if applies is not None:
        return lambda original: bool(applies(original))
    return lambda original: all(_has(original, name) for name in required)


def _has(original: Example, name: str) -> bool:
    if name == "answer":
        return bool(references(original))
    value = original.get(name)
    return value is not None and value not in ("", [], ())
