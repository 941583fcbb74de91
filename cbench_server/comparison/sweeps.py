"""Sweeps as curves: score over measured tokens, and the share of tokens that is enough."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from cbench_server.comparison.pairs import Key, Matched, Side, match
from cbench_server.metrics.stats.bootstrap import percentile_ends, resample, sums_by_cluster
from cbench_server.metrics.stats.intervals import Floats
from cbench_server.results import EvalRow
from cbench_server.types import ScoreInfo

ENOUGH = 0.95
"""The share of the whole context's score that is looked for."""
_EQUAL = 1e-9

State = Literal["interpolated", "smallest", "not reached", "unknown"]
TokensOf = Callable[[EvalRow], int | None]


@dataclass(frozen=True)
class Arm:
    """One arm of a sweep: its rows, and where it belongs."""

    system: str
    rows: Sequence[EvalRow]
    value: float | None = None
    """What the option was set to, or that of the point whose length was cut to."""
    cut: str = ""
    """How a control cuts; empty for a point."""


@dataclass(frozen=True)
class Point:
    """An arm as a curve has it. Ends are of 95 % intervals, by the paired bootstrap."""

    system: str
    value: float | None
    tokens: float | None
    """The mean of what was measured."""
    share: float | None
    """Those tokens as a share of the whole context's, on the examples that have both."""
    score: float
    low: float | None
    high: float | None
    of_whole: float | None = None
    """The score as a share of the whole context's."""
    of_whole_low: float | None = None
    of_whole_high: float | None = None


@dataclass(frozen=True)
class Needed:
    """The share of the whole context's tokens from which on `ENOUGH` of its score is kept."""

    state: State
    share: float | None = None
    low: float | None = None
    low_state: State = "unknown"
    """What the lower end is: between two points, at the smallest or less, or not reached."""
    high: float | None = None
    high_state: State = "unknown"


@dataclass(frozen=True)
class Sweep:
    """The curve of one system, and the curves it is seen against."""

    score: str
    examples: int
    clusters: int
    points: tuple[Point, ...]
    whole: Point | None
    controls: dict[str, tuple[Point, ...]] = field(default_factory=dict)
    goal: float | None = None
    """The score that is enough, `ENOUGH` of the whole context's; None where there is no share."""
    needed: Needed = field(default_factory=lambda: Needed("unknown"))
    why_unknown: str = ""
    is_flat: bool = False
    """Whether all points left the same tokens and got the same scores, example by example."""
    notes: tuple[str, ...] = ()

    def describe(self) -> dict[str, Any]:
        """Give it as plain data."""
        return asdict(self)


def sweep_of(
    points: Sequence[Arm],
    whole: Arm | None,
    controls: Sequence[Arm] = (),
    *,
    tokens_of: TokensOf,
    score_field: str | None = None,
    scores: Mapping[str, ScoreInfo] | None = None,
) -> Sweep:
    """Put all arms on the examples they share; raises InvalidInput where there are none."""
    arms = [*([whole] if whole else []), *points, *controls]
    sides = [Side(arm.system, arm.rows, score_field, scores) for arm in arms]
    matched = match(sides)
    info = (scores or {}).get(matched.score)
    draws = _Draws(matched, [_tokens(arm.rows, matched.keys, tokens_of) for arm in arms], whole)
    made = [draws.point(place, arm) for place, arm in enumerate(arms)]
    first = 1 if whole else 0
    ends = first + len(points)
    needed, why = Needed("unknown"), ""
    if whole is None:
        why = "no arm of the run reads the whole context"
    elif info is not None and not info.higher_is_better:
        why = f"of {matched.score} less is better"
    elif made[0].score <= 0:
        why = f"the whole context scores {made[0].score:.3f}, of which there is no share"
    elif any(point.share is None for point in made[first:ends]):
        why = "not every point tells its tokens"
    else:
        needed = draws.needed(range(first, ends))
    cuts: dict[str, tuple[Point, ...]] = {}
    for arm, point in zip(controls, made[ends:], strict=True):
        cuts[arm.cut] = (*cuts.get(arm.cut, ()), point)
    return Sweep(
        matched.score,
        len(matched.keys),
        matched.num_clusters,
        tuple(made[first:ends]),
        made[0] if whole else None,
        cuts,
        ENOUGH * made[0].score if not why else None,
        needed,
        why,
        draws.is_flat(range(first, ends)),
        matched.notes,
    )


def _tokens(rows: Iterable[EvalRow], keys: Sequence[Key], tokens_of: TokensOf) -> Floats:
    """Return the mean tokens of each example over its repeats; NaN where nothing tells."""
    sums: dict[Key, list[int]] = {}
    for row in rows:
        tokens = None if row.failure else tokens_of(row)
        if tokens is not None:
            sums.setdefault((row.dataset, row.example_id), []).append(tokens)
    return np.array(
        [sum(found) / len(found) if (found := sums.get(key)) else math.nan for key in keys]
    )


class _Draws:
    """Scores and tokens of every arm: as measured, and in each resample of the same examples."""

    def __init__(self, matched: Matched, tokens: Sequence[Floats], whole: Arm | None) -> None:
        self._scores = matched.scores
        self._tokens = tokens
        self._clusters = matched.num_clusters
        count = matched.scores.shape[1]
        base = tokens[0] if whole else np.full(len(matched.keys), math.nan)
        columns = [np.ones(len(matched.keys)), *matched.scores.T]
        for each in tokens:
            known = ~np.isnan(each)
            both = known & ~np.isnan(base)
            columns += [np.where(known, each, 0.0), known.astype(float)]
            columns += [np.where(both, each, 0.0), np.where(both, base, 0.0)]
        sums = sums_by_cluster(columns, matched.clusters)
        drawn = [sums.sum(axis=0, keepdims=True)]
        if self._clusters > 1:
            drawn.append(resample(sums))
        lines = np.concatenate(drawn)
        with np.errstate(divide="ignore", invalid="ignore"):
            self._quality = lines[:, 1 : 1 + count] / lines[:, :1]
            rest = lines[:, 1 + count :].reshape(len(lines), count, 4)
            self._mean = rest[:, :, 0] / rest[:, :, 1]
            self._share = rest[:, :, 2] / rest[:, :, 3]
            self._of_whole = self._quality / self._quality[:, :1]
        self._has_whole = whole is not None

    def point(self, place: int, arm: Arm) -> Point:
        """Describe one arm."""
        relative = self._of_whole[:, place] if self._has_whole else np.full(1, math.nan)
        low, high = self._ends(self._quality[1:, place])
        of_whole_low, of_whole_high = self._ends(relative[1:])
        return Point(
            arm.system,
            arm.value,
            _finite(self._mean[0, place]),
            _finite(self._share[0, place]),
            float(self._quality[0, place]),
            _finite(low),
            _finite(high),
            _finite(relative[0]),
            _finite(of_whole_low),
            _finite(of_whole_high),
        )

    def needed(self, places: range) -> Needed:
        """Find where the curve through some arms stays at or above what is enough."""
        shares, quality = self._share[:, places], self._quality[:, places]
        found = crossing(shares, quality, ENOUGH * self._quality[:, 0])
        low, high = self._ends(found[1:])
        return Needed(
            _state(found[0]),
            _finite(found[0]),
            _finite(low),
            _state(low),
            _finite(high),
            _state(high),
        )

    def is_flat(self, places: range) -> bool:
        """Whether arms are the same on every example."""
        first = places[0]
        return all(
            np.array_equal(self._scores[:, place], self._scores[:, first])
            and np.array_equal(self._tokens[place], self._tokens[first], equal_nan=True)
            for place in places
        )

    def _ends(self, drawn: Floats) -> tuple[float, float]:
        if not len(drawn):
            return math.nan, math.nan
        return percentile_ends(drawn, self._clusters)


def crossing(shares: Floats, quality: Floats, enough: Floats) -> Floats:
    """Return, line by line, the least share from which on a curve stays at or above `enough`.

    The curve is straight between neighbouring points, in the order of their
    shares. It is -inf where the smallest point is good already and all others
    are, and +inf where the largest is not.
    """
    order = np.argsort(shares, axis=1, kind="stable")
    x, y = np.take_along_axis(shares, order, 1), np.take_along_axis(quality, order, 1)
    count = x.shape[1]
    is_bad = y < enough[:, None] - _EQUAL
    # The last point that is not good enough; -1 where all are.
    last = np.where(is_bad.any(axis=1), count - 1 - np.argmax(is_bad[:, ::-1], axis=1), -1)
    left, right = np.clip(last, 0, count - 1), np.clip(last + 1, 0, count - 1)
    lines = np.arange(len(x))
    x0, x1, y0, y1 = x[lines, left], x[lines, right], y[lines, left], y[lines, right]
    with np.errstate(divide="ignore", invalid="ignore"):
        between = x0 + (enough - y0) / (y1 - y0) * (x1 - x0)
    found = np.where(last < 0, -np.inf, np.where(last == count - 1, np.inf, between))
    result: Floats = np.where(np.isnan(x).any(axis=1) | np.isnan(enough), np.inf, found)
    return result


def _state(value: float) -> State:
    if math.isnan(value):
        return "unknown"
    if math.isinf(value):
        return "not reached" if value > 0 else "smallest"
    return "interpolated"


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
