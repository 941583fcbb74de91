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

_TURNS = Extra(lambda row: row.metadata.get("turn_count") or 0, partial(array, "q"))
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

    `ingest_per_turn_*` has one value for each of the `num_conversations_timed`
    conversations: those put in while nothing else was called; in a run that has
    none, all. `mean_query_latency` is over the rows that `latency_mean` is over.
    """

    name = "token-efficiency"
    description = "Score for the tokens read, and the time to ingest and to ask, for memory runs."
    keys = (
        "token_efficiency",
        "token_efficiency_raw",
        "mean_score",
        "mean_input_tokens",
        *estimate_keys("mean_ingest_latency"),
        "ingest_per_turn_median",
        "ingest_per_turn_p95",
        "num_conversations_timed",
        *estimate_keys("mean_query_latency"),
        *estimate_keys("mean_stored_bytes"),
    )
    extras = (_INGEST_TIME, _STORED_BYTES, _TURNS)

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
            **_per_turn(frame),
            **frame.mean(frame.latency, done & frame.timed)
            .never_negative()
            .named("mean_query_latency"),
            **size.never_negative().named("mean_stored_bytes"),
        }


def _per_turn(frame: "Frame") -> Values:
    """Return the time to ingest a turn, over conversations."""
    turns = frame.extra(_TURNS)
    known = frame.has_answer & (turns > 0)
    alone = known & frame.was_ingested_alone
    chosen = frame.first_of_groups(alone if alone.any() else known)
    seconds = frame.extra(_INGEST_TIME) / turns.clip(min=1)
    median, p95 = frame.percentiles(seconds, chosen, 50, 95)
    return {
        "ingest_per_turn_median": median.value,
        "ingest_per_turn_p95": p95.value,
        "num_conversations_timed": float(chosen.sum()),
    }


def _efficiency(score: float | None, tokens: float | None) -> float | None:
    if score is None or tokens is None:
        return None
    return score * (_REFERENCE_TOKENS / tokens) ** _EXPONENT if tokens else 0.0
