"""Values of a comparison: differences, flips, costs and fronts, ready for any report."""

from dataclasses import dataclass
from typing import Literal

from cbench_server.comparison.tables import pair_tables, tables_of, to_html
from cbench_server.metrics.stats.estimate import Estimate

Axis = Literal["context_tokens", "latency", "cost_usd"]
"""Costs that quality is weighed against: context tokens left, seconds or US dollars per call."""

SIGNIFICANT = 0.05


@dataclass(frozen=True)
class CostChange:
    """How much more or less of something A uses than B, on the examples both have."""

    axis: Axis
    mean_a: float
    mean_b: float
    change: Estimate
    """Relative to B: -0.41 is 41 % less."""


@dataclass(frozen=True)
class Flip:
    """An example that one of the two passes and the other does not."""

    dataset: str
    example_id: str | int
    score_a: float
    score_b: float


@dataclass(frozen=True)
class PairedDifference:
    """System A against system B on the examples both have a score for.

    Scores are in their own unit; a failure of the system counts as 0, repeats
    of an example are averaged first.
    """

    a: str
    b: str
    score: str
    """The name of the score, or "score" where datasets count different ones."""
    examples: int
    """How many pairs there are."""
    clusters: int
    """How many independent groups they form; as many as examples where there are no groups."""
    mean_a: float
    mean_b: float
    difference: Estimate
    """A minus B, with its 95 % interval."""
    p: float
    """How often chance alone gives a difference at least as large."""
    p_adjusted: float
    """The same after Holm's correction for all comparisons made together."""
    test: str
    """How p was found, in words."""
    comparisons: int
    """How many were made together."""
    wins: int
    """Examples on which A scores higher."""
    losses: int
    ties: int
    minimum_detectable: float | None
    """The true difference that this many examples would show with 80 % probability."""
    effect: float
    """The difference worth seeing, in the score's unit, which `more_examples` is about."""
    more_examples: int | None
    """How many more would show `effect` with 80 % probability; None if that cannot be told."""
    flipped_to_a: int
    """Examples that A passes and B does not."""
    flipped_to_b: int
    flips: tuple[Flip, ...]
    """Some of these, those with the largest difference first."""
    costs: tuple[CostChange, ...]
    in_points: bool
    """Whether scores lie between 0 and 1, so that a hundredth is a point."""
    sentence: str
    """What can be claimed, in plain words."""
    disputed: bool = False
    """Whether another rater orders the two the other way round."""
    higher_is_better: bool = True

    @property
    def is_a_better(self) -> bool:
        """Whether the difference, if it can be claimed, speaks for A."""
        value = self.difference.value or 0.0
        return value > 0 if self.higher_is_better else value < 0

    @property
    def is_claimed(self) -> bool:
        """Whether a difference can be claimed: by the adjusted p and by the interval."""
        low, high = self.difference.low, self.difference.high
        excludes_zero = low is not None and high is not None and (low > 0 or high < 0)
        return self.p_adjusted < SIGNIFICANT and excludes_zero and not self.disputed

    def _repr_html_(self) -> str:
        return to_html((self.sentence,), pair_tables(self))


@dataclass(frozen=True)
class FrontPoint:
    """Where a system stands between quality and cost."""

    system: str
    quality: Estimate
    cost: Estimate
    layer: int
    """1 on the front, 2 on the front without those, and so on."""
    probability: float
    """In what share of bootstrap resamples it is on the front."""


@dataclass(frozen=True)
class Front:
    """All systems between quality and one kind of cost, on the examples all of them have."""

    axis: Axis
    examples: int
    points: tuple[FrontPoint, ...]


@dataclass(frozen=True)
class GroupDifference:
    """System A against system B on the examples of one group.

    Its p is adjusted for all groups of the field, and all pairs.
    """

    field: str
    group: str
    pair: PairedDifference


@dataclass(frozen=True)
class Comparison:
    """Several systems, pair by pair and all together."""

    systems: tuple[str, ...]
    pairs: tuple[PairedDifference, ...]
    fronts: tuple[Front, ...]
    notes: tuple[str, ...]
    """What to know before believing it, such as examples that only some systems have."""
    groups: tuple[GroupDifference, ...] = ()
    """The differences by group, pair by pair."""

    @property
    def sentences(self) -> tuple[str, ...]:
        """One plain sentence per pair."""
        return tuple(pair.sentence for pair in self.pairs)

    def _repr_html_(self) -> str:
        return to_html(self.sentences, tables_of(self), self.notes)
