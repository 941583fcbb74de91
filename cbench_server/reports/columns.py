"""Columns of a table: which metrics it shows, and in which order."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from cbench_server.metrics import METRICS
from cbench_server.metrics.stats.estimate import base_key
from cbench_server.results import Summary
from cbench_server.texts import numbers

Values = Mapping[str, float | None]

DATASET_PREFIX = "dataset:"
_EVERY_SCORE = ("mean_score:", "num_scored:")

_BUILTIN_KEYS = tuple(key for metric in METRICS.values() for key in cast(Any, metric).keys)


@dataclass(frozen=True)
class Column:
    """A column of the headline table: its metric keys, and how to show their values."""

    title: str
    keys: tuple[str, ...]
    show: Callable[[Values], str]


def _one(key: str, show: Callable[[float | None], str]) -> Callable[[Values], str]:
    return lambda values: show(values.get(key))


def _metric(key: str) -> Callable[[Values], str]:
    return lambda values: numbers.of_metric(key, values.get(key))


def _score(values: Values) -> str:
    return numbers.score(values.get("mean_score_with_failures", values.get("mean_score")))


def _interval(values: Values) -> str:
    key = "mean_score_with_failures"
    if key not in values:
        key = "mean_score"
    return numbers.interval(values.get(f"{key}_ci_low"), values.get(f"{key}_ci_high"))


def _passed(values: Values) -> str:
    return numbers.share(values.get("pass_rate_with_failures", values.get("pass_rate")))


def _context(values: Values) -> str:
    saved = values.get("context_compression")
    return numbers.change(None if saved is None else -saved)


def _tokens(values: Values) -> str:
    before, after = values.get("mean_input_tokens"), values.get("mean_output_tokens")
    if before is None and after is None:
        return numbers.MISSING
    return f"{numbers.count(before)} → {numbers.count(after)}"


# A judge's mean is what its owner pays for, whichever score counts.
_JUDGES = ("judge_score", "memory_judge")

HEADLINE = (
    Column("Score", ("mean_score_with_failures", "mean_score"), _score),
    Column("95% CI", ("mean_score_with_failures_ci_low", "mean_score_ci_low"), _interval),
    Column("Geometric mean", ("geometric_mean",), _one("geometric_mean", numbers.score)),
    Column("Passed", ("pass_rate_with_failures", "pass_rate"), _passed),
    *(
        Column(name, (f"mean_score:{name}",), _one(f"mean_score:{name}", numbers.score))
        for name in _JUDGES
    ),
    Column("Context", ("context_compression",), _context),
    Column("Tokens", ("mean_input_tokens", "mean_output_tokens"), _tokens),
    Column("p50", ("latency_median",), _one("latency_median", numbers.seconds)),
    Column("p95", ("latency_p95",), _one("latency_p95", numbers.seconds)),
    Column(
        "Ingest/turn", ("ingest_per_turn_median",), _one("ingest_per_turn_median", numbers.seconds)
    ),
)
TIME_TITLES = ("p50", "p95")


def headline_columns(
    summary: Summary, *, all_keys: bool, counted: Collection[str] = ()
) -> list[Column]:
    """Return the columns that have something to show, beside the scores that are `counted`.

    Values of custom metrics are always shown, other values of the built-in metrics
    only with `all_keys`, for a run that chose its metrics.
    """
    present = set(ordered_keys(summary))
    columns = [
        column
        for column in HEADLINE
        if present.intersection(column.keys) and column.title not in counted
    ]
    shown = {key for column in HEADLINE for key in column.keys}
    if not all_keys:
        shown.update(_BUILTIN_KEYS)
    hidden = (DATASET_PREFIX,) if all_keys else (DATASET_PREFIX, *_EVERY_SCORE)
    for key in main_keys(summary):
        if key not in shown and not key.startswith(hidden):
            columns.append(Column(key, (key,), _metric(key)))
    return columns


def ordered_keys(summary: Mapping[str, Iterable[str]]) -> list[str]:
    """Return every metric key: those of built-in metrics in their order, then the others'.

    A summary that crossed the wire has lost its order, so it cannot be relied on.
    """
    present = {key for values in summary.values() for key in values}
    known = [key for key in _BUILTIN_KEYS if key in present]
    return list(dict.fromkeys([*known, *sorted(present.difference(known))]))


def main_keys(summary: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the keys without the standard errors and intervals of others."""
    keys = ordered_keys(summary)
    present = set(keys)
    return [key for key in keys if base_key(key) == key or base_key(key) not in present]


def dataset_keys(summary: Summary) -> list[str]:
    """Return the keys of the breakdown by dataset."""
    return [key for key in main_keys(summary) if key.startswith(DATASET_PREFIX)]


def type_keys(summary: Summary, score_field: str) -> list[str]:
    """Return the keys of the breakdown by type of question, for a memory run."""
    prefix = f"{score_field or 'score'}_"
    others = {*_BUILTIN_KEYS, f"{prefix}mean"}
    return [key for key in main_keys(summary) if key.startswith(prefix) and key not in others]
