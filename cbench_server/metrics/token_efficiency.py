"""Token efficiency of a score, and the time that remembering takes."""

from array import array
from functools import partial
from typing import TYPE_CHECKING

from cbench_server.metrics.protocol import FrameMetric, Values
from cbench_server.metrics.stats.columns import UNKNOWN, Extra
from cbench_server.metrics.stats.estimate import estimate_keys

if TYPE_CHECKING:
    from cbench_server.metrics.stats.frame import Frame

# The formula of context-bench: forgiving, since ten times the tokens cost a fifth of the value.
_REFERENCE_TOKENS = 100.0
_EXPONENT = 0.1

_INGEST_TIME = Extra(lambda row: row.ingest_time, partial(array, "d"))
_STORED_BYTES = Extra(
    lambda row: UNKNOWN if row.stored_bytes is None else row.stored_bytes, partial(array, "q")
)


class TokenEfficiency(FrameMetric):
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
    extras = (_INGEST_TIME, _STORED_BYTES)

    def __init__(self, score_field: str | None = None) -> None:
        self.score_field = score_field

    def over(self, frame: "Frame") -> Values:
        rows = frame.scored(self.score_field)
        done = frame.has_answer
        score = frame.mean(rows.values, rows.is_scored).value
        tokens = frame.mean(frame.input_tokens, done).value
        stored = frame.extra(_STORED_BYTES)
        size = frame.mean(stored, done & (stored != UNKNOWN))
        ingest = frame.mean(frame.extra(_INGEST_TIME), done)
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
