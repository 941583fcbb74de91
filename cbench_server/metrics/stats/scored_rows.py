"""Scored rows: one score of one system, with what became of every row."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cbench_server.metrics.outcomes import Outcome, worst_value
from cbench_server.metrics.stats.intervals import Codes, Floats
from cbench_server.types import ScoreInfo

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class ScoredRows:
    """Every row is one of four: scored, failed, unscored, not applicable."""

    values: Floats
    """Undefined where a row is not scored."""
    is_scored: Flags
    is_failed: Flags
    is_unscored: Flags
    is_not_applicable: Flags
    worst: Floats
    """What each row is at worst; undefined where that is not known."""
    lower_is_better: Flags

    @property
    def in_unit(self) -> bool:
        """Whether all scores lie between 0 and 1."""
        chosen = self.values[self.is_scored]
        return bool(((chosen >= 0.0) & (chosen <= 1.0)).all())

    def of(self, part: Flags) -> "ScoredRows":
        """Take a part; other rows count as not applicable."""
        return replace(
            self,
            is_scored=self.is_scored & part,
            is_failed=self.is_failed & part,
            is_unscored=self.is_unscored & part,
            is_not_applicable=self.is_not_applicable | ~part,
        )

    def with_failures(self) -> tuple[Floats, Flags]:
        """Return the scores with failed rows at their worst, and which rows count.

        None counts where a failed row's worst value is not known: a mean
        without it would be better for the failure.
        """
        return self._at_worst(self.is_failed)

    def worst_case(self) -> tuple[Floats, Flags]:
        """Likewise, with unscored rows at their worst as well."""
        return self._at_worst(self.is_failed | self.is_unscored)

    def passed(self, threshold: float) -> Flags:
        """Tell which rows are good enough."""
        with np.errstate(invalid="ignore"):
            good: Flags = np.where(
                self.lower_is_better, self.values <= threshold, self.values >= threshold
            )
        return good & self.is_scored

    def _at_worst(self, where: Flags) -> tuple[Floats, Flags]:
        counted = np.where(where, self.worst, self.values)
        is_counted: Flags = self.is_scored | where
        if np.isnan(counted[is_counted]).any():
            return counted, np.zeros_like(is_counted)
        return counted, is_counted


def scored_rows(
    values: Floats,
    outcomes: NDArray[np.int8],
    codes: Codes,
    names: Mapping[str, int],
    infos: Mapping[str, ScoreInfo],
    *,
    responds: bool,
) -> ScoredRows:
    """Tell what became of the rows; `codes` and `names` say which score each counts.

    `responds` says that the system is one that answers, so that a row without a
    response has the worst score.
    """
    worst = np.full(len(values), np.nan)
    lower = np.zeros(len(values), np.bool_)
    for name, code in names.items():
        where = codes == code
        info = infos.get(name)
        lower[where] = info is not None and not info.higher_is_better
        known = worst_value(info)
        chosen = values[where & (outcomes == Outcome.SCORED)]
        is_declared = info is not None and info.worst is not None
        if known is not None and (is_declared or bool(((chosen >= 0.0) & (chosen <= 1.0)).all())):
            worst[where] = known
    is_missing = outcomes == Outcome.NO_RESPONSE
    values = np.where(is_missing & responds, worst, values)
    is_scored = (outcomes == Outcome.SCORED) | (is_missing & responds & ~np.isnan(worst))
    is_not_applicable = outcomes == Outcome.NOT_APPLICABLE
    is_failed = outcomes == Outcome.FAILED
    return ScoredRows(
        values,
        is_scored,
        is_failed,
        ~(is_scored | is_failed | is_not_applicable),
        is_not_applicable,
        worst,
        lower,
    )
