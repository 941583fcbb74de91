"""Pairs of rows: the rows of different systems, matched by example."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cbench_server.comparison.values import Axis
from cbench_server.errors import InvalidInput
from cbench_server.metrics.outcomes import (
    Outcome,
    Responses,
    is_timeout,
    outcome_of,
    worst_value,
)
from cbench_server.metrics.stats.intervals import Codes, Floats
from cbench_server.results import RETENTION, EvalRow
from cbench_server.types import ScoreInfo

Key = tuple[str, str | int]
"""An example: its dataset and its id, which is unique there."""

AXES: tuple[Axis, ...] = ("context_tokens", "latency", "cost_usd")
_LATENCY = AXES.index("latency")


class _Example:
    """The scores and costs of one system on one example, over all repeats."""

    __slots__ = ("alone", "costs", "counts", "group", "input_tokens", "names", "results", "scores")

    def __init__(self, row: EvalRow) -> None:
        self.group = row.group
        # What a memory hands over counts as its input, so it does not tell one question's length.
        is_memory = "conversation_id" in row.metadata
        self.input_tokens = None if is_memory else row.input_tokens
        self.results: list[tuple[str, Outcome, float | None]] = []
        """For each repeat what counts, what became of it, and its value."""
        self.names: set[str] = set()
        self.scores: list[float] = []
        self.costs = [0.0] * len(AXES)
        self.counts = [0] * len(AXES)
        self.alone: list[float] = []
        """Times of rows that were timed while nothing else was called."""

    def add(self, row: EvalRow, score: str) -> None:
        self.results.append((score, outcome_of(row, score), row.scores.get(score)))
        costs = _costs(row)
        for place, cost in enumerate(costs):
            if cost is not None:
                self.costs[place] += cost
                self.counts[place] += 1
        seconds = costs[_LATENCY]
        if row.alone and seconds is not None:
            self.alone.append(seconds)


def _costs(row: EvalRow) -> tuple[float | None, ...]:
    """Return what a row cost; of failed rows only the time of a timeout counts."""
    if row.failure:
        return (None, row.call_seconds if is_timeout(row) else None, None)
    return (row.context_tokens_out, row.call_seconds, row.total_cost_usd)


class Side:
    """The rows of one system by example, in the order in which the examples came."""

    def __init__(
        self,
        name: str,
        rows: Iterable[EvalRow],
        score_field: str | None = None,
        infos: Mapping[str, ScoreInfo] | None = None,
        *,
        unscored_at_worst: bool = False,
    ) -> None:
        """`unscored_at_worst` counts rows that we could not score as a system's failure."""
        self.name = name
        self.score_field = score_field
        self.known: set[str] = set()
        """The names of all scores that the rows have."""
        self.examples: dict[Key, _Example] = {}
        self._infos = infos or {}
        self._at_worst = {Outcome.FAILED}
        if unscored_at_worst:
            self._at_worst.add(Outcome.UNSCORED)
        # Two readings, since only the last row tells whether the system ever responds.
        as_retention: dict[Key, _Example] = {}
        responses = Responses()
        for row in rows:
            self.known.update(row.scores)
            responses.see(row)
            key = (row.dataset, row.example_id)
            _add(self.examples, key, row, score_field or row.primary_score)
            if score_field is None and not responses.has_response:
                _add(as_retention, key, row, RETENTION)
        if score_field is None and responses.retains_only:
            self.examples = as_retention
        is_timed = any(example.alone for example in self.examples.values())
        for example in self.examples.values():
            self._settle(example, responds=not responses.retains_only)
            if is_timed:
                example.costs[_LATENCY] = sum(example.alone)
                example.counts[_LATENCY] = len(example.alone)

    def _settle(self, example: _Example, *, responds: bool) -> None:
        """Take the scores that count, failures at their worst."""
        for name, outcome, value in example.results:
            at_worst = outcome in self._at_worst or (responds and outcome == Outcome.NO_RESPONSE)
            score = worst_value(self._infos.get(name)) if at_worst else value
            if score is not None and (at_worst or outcome == Outcome.SCORED):
                example.scores.append(score)
                if outcome not in self._at_worst:
                    example.names.add(name)

    def scored(self) -> dict[Key, _Example]:
        """Return the examples that have a score, a failure of the system being one."""
        return {key: example for key, example in self.examples.items() if example.scores}


def _add(examples: dict[Key, _Example], key: Key, row: EvalRow, score: str) -> None:
    example = examples.get(key)
    if example is None:
        example = examples[key] = _Example(row)
    example.add(row, score)


@dataclass(frozen=True)
class Matched:
    """Several systems on the same examples: one line per example, one column per system."""

    names: tuple[str, ...]
    keys: list[Key]
    score: str
    scores: Floats
    costs: dict[Axis, Floats]
    """NaN where a system gave none."""
    clusters: Codes | None
    """What varies together; None where every example stands alone."""
    notes: tuple[str, ...]
    weights: Floats | None = None
    """How much each example counts, together 1; None where all count the same."""
    parts: Codes | None = None
    """The part of a suite that each example is of, where they are weighed."""

    def part(self, places: Sequence[int]) -> "Matched":
        """Take some of the examples, each of which counts the same."""
        clusters = self.clusters
        if clusters is not None:
            clusters = np.unique(clusters[places], return_inverse=True)[1]
        return replace(
            self,
            keys=[self.keys[place] for place in places],
            scores=self.scores[places],
            costs={axis: costs[places] for axis, costs in self.costs.items()},
            clusters=clusters,
            weights=None,
            parts=None,
        )

    @property
    def num_clusters(self) -> int:
        """How many independent groups of examples there are."""
        return len(self.keys) if self.clusters is None else int(self.clusters.max()) + 1


def match(sides: list[Side]) -> Matched:
    """Put systems side by side on the examples for which all have the same score.

    Raises InvalidInput if there are none.
    """
    scored = [side.scored() for side in sides]
    together = [key for key in scored[0] if all(key in other for other in scored[1:])]
    keys, clash = [], ""
    for key in together:
        used = set[str]().union(*(examples[key].names for examples in scored))
        if len(used) <= 1:
            keys.append(key)
        else:
            clash = " and ".join(sorted(used))
    if not keys:
        raise InvalidInput(_nothing_in_common(sides, scored, clash))
    chosen = [[examples[key] for key in keys] for examples in scored]
    names = sorted(set[str]().union(*(example.names for line in chosen for example in line)))
    return Matched(
        names=tuple(side.name for side in sides),
        keys=keys,
        score=names[0] if len(names) == 1 else "score",
        scores=np.array([[math.fsum(e.scores) / len(e.scores) for e in line] for line in chosen]).T,
        costs={axis: _cost_column(chosen, place) for place, axis in enumerate(AXES)},
        clusters=_clusters(keys, chosen[0]),
        notes=tuple(_notes(sides, scored, keys, len(together) - len(keys), clash)),
    )


def _cost_column(chosen: list[list[_Example]], place: int) -> Floats:
    return np.array(
        [
            [e.costs[place] / e.counts[place] if e.counts[place] else math.nan for e in line]
            for line in chosen
        ]
    ).T


def _clusters(keys: list[Key], examples: list[_Example]) -> Codes | None:
    if not any(example.group for example in examples):
        return None
    codes: dict[tuple[str, str | int, bool], int] = {}
    return np.array(
        [
            codes.setdefault((dataset, e.group or example_id, bool(e.group)), len(codes))
            for (dataset, example_id), e in zip(keys, examples, strict=True)
        ]
    )


def _nothing_in_common(sides: list[Side], scored: list[dict[Key, _Example]], clash: str) -> str:
    who = " and ".join(f'"{side.name}"' for side in sides)
    if clash:
        shared = ", ".join(sorted(set[str].intersection(*(side.known for side in sides))))
        way = f"Name one of {shared} with --score-field" if shared else "They share no score"
        return f"{who} are scored differently ({clash}), so they cannot be compared. {way}."
    for side, examples in zip(sides, scored, strict=True):
        if not examples:
            score = f'the score "{side.score_field}"' if side.score_field else "a score that counts"
            known = ", ".join(sorted(side.known)) or "none at all"
            return f'no row of "{side.name}" has {score}; there is: {known}.'
    return f"{who} have no example in common. Compare runs over the same dataset."


def _notes(
    sides: list[Side],
    scored: list[dict[Key, _Example]],
    keys: list[Key],
    clashing: int,
    clash: str,
) -> Iterable[str]:
    if clashing:
        yield f"{clashing:,} examples are left out: they are scored differently ({clash})."
    for side, examples in zip(sides, scored, strict=True):
        if alone := len(examples) - len(keys) - clashing:
            others = " and ".join(other.name for other in sides if other is not side)
            yield f"{alone:,} examples of {side.name} have no counterpart in {others}: left out."
        if unscored := len(side.examples) - len(examples):
            yield f"{unscored:,} examples of {side.name} have no score and are left out."
    first = scored[0]
    changed = sum(
        any(examples[key].input_tokens != first[key].input_tokens for examples in scored[1:])
        for key in keys
    )
    if changed:
        yield (
            f"{changed:,} examples have the same id but a different length: the dataset, the "
            "tokenizer or the withheld fields differ between the runs."
        )
