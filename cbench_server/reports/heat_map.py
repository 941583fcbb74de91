"""Heat maps: the mean score for each length of the context and each place of what is asked for."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from cbench_server.results import EvalRow
from cbench_server.texts import numbers

_ACROSS, _DOWN = "length", "depth"
_MOST_CELLS = 2000


class HeatMap:
    """Takes note of rows that keep both a length and a depth, while they are read."""

    def __init__(self) -> None:
        self._cells: defaultdict[tuple[str, str, float, float], list[float]] = defaultdict(
            lambda: [0.0, 0.0]
        )

    def noting(self, rows: Iterable[EvalRow]) -> Iterator[EvalRow]:
        """Pass rows on; one that failed counts 0, one without a score nowhere."""
        for row in rows:
            across, down = row.groups.get(_ACROSS), row.groups.get(_DOWN)
            score = 0.0 if row.failure else row.score
            if across and down and score is not None and _are_numbers(across, down):
                cell = self._cells[row.dataset, row.system, float(across), float(down)]
                cell[0] += score
                cell[1] += 1
            yield row

    def cells(self, mark: str = "") -> list[dict[str, Any]]:
        """Return the cells, by dataset, system, length and depth; none where there is no grid.

        `mark` stands behind each score.
        """
        places = {down for *_, down in self._cells}
        if len(places) < 2 or len(self._cells) > _MOST_CELLS:
            return []
        return [
            {
                "dataset": dataset,
                "system": system,
                "length": across,
                "depth": down,
                "value": total / count,
                "text": numbers.score(total / count) + mark,
                "rows": int(count),
            }
            for (dataset, system, across, down), (total, count) in sorted(self._cells.items())
        ]


def _are_numbers(*texts: str) -> bool:
    return all(text.replace(".", "", 1).isdecimal() for text in texts)
