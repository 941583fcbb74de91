"""What a score costs in tokens read, and how long remembering takes."""

from array import array
from collections.abc import Sequence

from cbench_server.metrics.accumulate import Accumulator, Values, compute
from cbench_server.metrics.columns import Columns
from cbench_server.metrics.estimate import estimate_keys
from cbench_server.results import EvalRow

# The formula of context-bench: forgiving, since ten times the tokens cost a fifth of the value.
_REFERENCE_TOKENS = 100.0
_EXPONENT = 0.1


class TokenEfficiency:
    """Gives `token_efficiency`: the mean score, less for every token a model had to read for it.

    That is mean score * (100 / mean input tokens) ** 0.1, and
    `token_efficiency_raw` is the mean score for each thousand tokens. The mean
    score is over the rows that have one, the tokens and times are over the
    rows that did not fail. What is not defined is None.
    """

    name = "token-efficiency"
    description = "Score for the tokens read, and the time to ingest and to ask, for memory runs."
    keys = (
        "token_efficiency",
        "token_efficiency_raw",
        "mean_score",
        "mean_input_tokens",
        *estimate_keys("mean_ingest_latency"),
        *estimate_keys("mean_query_latency"),
        *estimate_keys("mean_stored_bytes"),
    )

    def __init__(self, score_field: str | None = None) -> None:
        self.score_field = score_field

    def compute(self, rows: Sequence[EvalRow]) -> Values:
        return compute(self, rows)

    def accumulate(self) -> Accumulator:
        return _TokenEfficiency(self.score_field)


class _TokenEfficiency:
    def __init__(self, score_field: str | None) -> None:
        self._score_field = score_field
        self._columns = Columns((score_field,))
        self._ingest = array("d")
        self._stored = array("q")

    def add(self, row: EvalRow) -> None:
        self._columns.add(row)
        self._ingest.append(row.ingest_time)
        self._stored.append(-1 if row.stored_bytes is None else row.stored_bytes)

    def result(self) -> Values:
        from cbench_server.metrics.frame import Frame

        frame = Frame(self._columns)
        scores, has_score = frame.scores_and_presence(self._score_field)
        done = frame.has_answer
        score = frame.mean(scores, has_score).value
        tokens = frame.mean(frame.input_tokens, done).value
        stored = frame.column(self._stored)
        size = frame.mean(stored, done & (stored >= 0))
        ingest = frame.mean(frame.column(self._ingest), done)
        return {
            "token_efficiency": _efficiency(score, tokens),
            "token_efficiency_raw": None
            if score is None or not tokens
            else score / (tokens / 1000),
            "mean_score": score,
            "mean_input_tokens": tokens,
            **ingest.never_negative().named("mean_ingest_latency"),
            **frame.mean(frame.latency, done).never_negative().named("mean_query_latency"),
            **size.never_negative().named("mean_stored_bytes"),
        }


def _efficiency(score: float | None, tokens: float | None) -> float | None:
    if score is None or tokens is None:
        return None
    return score * (_REFERENCE_TOKENS / tokens) ** _EXPONENT if tokens else 0.0
