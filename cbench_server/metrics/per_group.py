"""Mean of a score on each group of rows, by fields of their examples."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cbench_server.limits import MAX_GROUPS
from cbench_server.metrics.groups import group_names, group_of
from cbench_server.metrics.protocol import FrameMetric, Values
from cbench_server.metrics.stats.columns import Extra, Labels
from cbench_server.metrics.stats.estimate import estimate_keys
from cbench_server.results import EvalRow

if TYPE_CHECKING:
    from cbench_server.metrics.stats.frame import Frame

PREFIX = "group:"
ROWS = "group_rows:"
COUNT = "num_groups:"


class PerGroup(FrameMetric):
    """Gives `group:<field>=<value>`, the mean of the primary score, for every value of each field.

    `group_rows:<field>=<value>` is on how many rows it stands. Rows that failed
    on the system's side count at worst, as in `mean_score_with_failures`. Fields
    with many numbers are put into the same bins for all systems. A field with
    more than 200 groups has none, only their number as `num_groups:<field>`.
    """

    name = "per-group"
    description = "Mean of the primary score on each group of rows, by fields of the examples."
    keys = (
        "num_groups:<field>",
        *estimate_keys("group:<field>=<value>"),
        "group_rows:<field>=<value>",
    )

    def __init__(
        self, fields: Sequence[str] = ("dataset",), score_field: str | None = None
    ) -> None:
        self.score_field = score_field
        self._columns = {field: self._column(field) for field in fields}
        self._seen: dict[str, dict[str, None]] = {field: {} for field in fields}
        self.extras = tuple(self._columns.values())

    def _column(self, field: str) -> Extra:
        def take(row: EvalRow) -> str:
            value = group_of(row, field)
            # Of all systems, since the bins have to be the same for each.
            self._seen[field][value] = None
            return value

        return Extra(take, Labels)

    def over(self, frame: "Frame") -> Values:
        values: Values = {}
        for field in self._columns:
            names = group_names(self._seen[field])
            groups = dict.fromkeys(names.values())
            values[f"{COUNT}{field}"] = float(len(groups))
            if len(groups) <= MAX_GROUPS:
                values |= self._means(frame, field, names, groups)
        return values

    def _means(
        self, frame: "Frame", field: str, names: dict[str, str], groups: dict[str, None]
    ) -> Values:
        import numpy as np

        scored = frame.scored(self.score_field)
        codes, rows = frame.labels(self._columns[field])
        values: Values = {}
        for group in groups:
            members = [code for value, code in codes.items() if names[value] == group]
            part = scored.of(np.isin(rows, members))
            counted, where = part.with_failures()
            values |= frame.mean(counted, where, in_unit=part.in_unit).named(
                f"{PREFIX}{field}={group}"
            )
            values[f"{ROWS}{field}={group}"] = float(where.sum())
        return values
