"""Needles in a haystack, in the eight kinds that RULER has."""

from collections.abc import Callable
from dataclasses import dataclass

from cbench_server.datasets.generated.draws import Draws
from cbench_server.datasets.generated.fitting import fitted
from cbench_server.datasets.generated.haystacks import (
    NOISE,
    essay,
    given_essay,
    sentences,
    with_needles,
)
from cbench_server.datasets.generated.made import Made, Wanted
from cbench_server.datasets.generated.words import PAIRS

_KINDS: dict[str, Callable[[Draws], str]] = {
    "number": lambda draws: draws.digits(7),
    "code": lambda draws: draws.uuid(),
    "name": lambda draws: draws.pick(PAIRS),
}


@dataclass(frozen=True, slots=True)
class NeedleTask:
    """How many needles of what kind are hidden in what, and how many are asked for."""

    hay: str
    keys_are: str = "name"
    values_are: str = "number"
    keys: int = 1
    values: int = 1
    queries: int = 1

    def make(self, wanted: Wanted) -> Made:
        """Hide the needles, and ask for those of the first keys."""
        draws = wanted.draws
        keys = self._different(draws, self.keys_are, max(self.keys, self.queries))
        values = self._different(draws, self.values_are, len(keys) * self.values)
        needles = [
            self.needle(key, value)
            for place, key in enumerate(keys)
            for value in values[place * self.values : (place + 1) * self.values]
        ]
        asked, right = keys[: self.queries], values[: self.queries * self.values]
        order = draws.shuffled(needles)
        depths = wanted.depths(len(needles))
        build = self._builder(wanted, order, depths, set(keys))
        evidence = needles[: len(right)]
        depth = depths[order.index(evidence[0])] if len(evidence) == 1 else None
        context = fitted(build, wanted.length, least=2)
        return Made(context, self._question(asked, len(right)), right, evidence, depth)

    def needle(self, key: str, value: str) -> str:
        """State one value of a key."""
        return f"Note for the register: the {self.values_are} of {key} is {value}."

    def _question(self, keys: list[str], count: int) -> str:
        of = f"{', '.join(keys[:-1])} and {keys[-1]}" if len(keys) > 1 else keys[0]
        if count == 1:
            return f"What is the {self.values_are} of {of} according to the text?"
        return f"What are all the {self.values_are}s of {of} according to the text?"

    def _different(self, draws: Draws, kind: str, count: int) -> list[str]:
        found: dict[str, None] = {}
        while len(found) < count:
            found.setdefault(_KINDS[kind](draws))
        return list(found)

    def _builder(
        self, wanted: Wanted, needles: list[str], depths: list[int], keys: set[str]
    ) -> Callable[[int], str]:
        draws = wanted.draws
        if self.hay == "needles":
            hay: list[str] = []
            others = self._other_needles(draws, keys)

            def of_needles(count: int) -> str:
                while len(hay) < count:
                    hay.append(others())
                return with_needles(hay[:count], needles, depths, "\n")

            return of_needles
        if self.hay == "noise":
            noise = " ".join(NOISE)
            return lambda count: with_needles([noise] * count, needles, depths, "\n")
        name = wanted.haystack
        text = given_essay(name, wanted.data_dir) if name else essay()
        start = draws.below(len(text))
        return lambda count: with_needles(sentences(text, count, start), needles, depths, " ")

    def _other_needles(self, draws: Draws, keys: set[str]) -> Callable[[], str]:
        def other() -> str:
            while True:
                key = _KINDS[self.keys_are](draws)
                if key not in keys:
                    return self.needle(key, _KINDS[self.values_are](draws))

        return other


NEEDLE_TASKS = {
    "niah_single_1": NeedleTask("noise"),
    "niah_single_2": NeedleTask("essay"),
    "niah_single_3": NeedleTask("essay", values_are="code"),
    "niah_multikey_1": NeedleTask("essay", keys=4),
    "niah_multikey_2": NeedleTask("needles"),
    "niah_multikey_3": NeedleTask("needles", keys_are="code", values_are="code"),
    "niah_multivalue": NeedleTask("essay", values=4),
    "niah_multiquery": NeedleTask("essay", queries=4),
}
