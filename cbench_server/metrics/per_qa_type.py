"""The mean of a score on each type of question."""

from array import array
from collections.abc import Sequence

from cbench_server.metrics.accumulate import Accumulator, Values, compute
from cbench_server.metrics.columns import Columns
from cbench_server.metrics.estimate import estimate_keys
from cbench_server.results import EvalRow


class PerQAType:
    """Gives `<score>_<type>` for every type of question, and `<score>_mean` over all of them.

    `<score>` is the score field, or `score` where each row's primary one
    counts. The type is `qa_type` of the row's metadata; rows without one count
    as "unknown". Rows that failed on the system's side count as 0, as in
    `mean_score_with_failures`. A type of which no row counts gives None.
    """

    name = "per-qa-type"
    description = "Mean of the primary score on each type of question, for memory runs."
    keys = (*estimate_keys("score_<type>"), *estimate_keys("score_mean"))

    def __init__(self, score_field: str | None = None) -> None:
        self.score_field = score_field

    def compute(self, rows: Sequence[EvalRow]) -> Values:
        return compute(self, rows)

    def accumulate(self) -> Accumulator:
        return _PerQAType(self.score_field)


class _PerQAType:
    def __init__(self, score_field: str | None) -> None:
        self._score_field = score_field
        self._columns = Columns((score_field,))
        self._types: dict[str, int] = {}
        self._type = array("i")

    def add(self, row: EvalRow) -> None:
        self._columns.add(row)
        kind = str(row.metadata.get("qa_type", "unknown"))
        self._type.append(self._types.setdefault(kind, len(self._types)))

    def result(self) -> Values:
        from cbench_server.metrics.frame import Frame

        frame = Frame(self._columns)
        prefix = self._score_field or "score"
        scores, has_score = frame.scores_and_presence(self._score_field)
        in_unit = frame.is_in_unit(scores, has_score)
        kinds = frame.column(self._type)
        counted = frame.with_failures_as_zero(scores)
        is_counted = counted == counted
        values: Values = {}
        for kind, code in sorted(self._types.items()):
            rows = is_counted & (kinds == code)
            values |= frame.mean(counted, rows, in_unit=in_unit).named(f"{prefix}_{kind}")
        if self._types:
            values |= frame.mean(counted, is_counted, in_unit=in_unit).named(f"{prefix}_mean")
        return values
