"""Columns of a table: which metrics it shows, and in which order."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from cbench_server.metrics import METRICS, reported_compression
from cbench_server.metrics.stats.estimate import base_key
from cbench_server.results import Summary
from cbench_server.texts import numbers

Values = Mapping[str, float | None]

UNKNOWN = "unknown"
"""Shown where nothing tells what a system left of the context."""
REPORTED = "reported"
"""Shown behind what the endpoints say of themselves."""

DATASET_PREFIX = "dataset:"
_EVERY_SCORE = ("mean_score:", "num_scored:")
# What has tables of its own.
_OTHER_TABLES = (
    DATASET_PREFIX,
    "suite:",
    "suite_part:",
    "suite_unscored:",
    "group:",
    "group_rows:",
    "num_groups:",
)

BUILTIN_KEYS = (
    *(key for metric in METRICS.values() for key in cast(Any, metric).keys),
    *reported_compression.KEYS,
)


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
    return interval_of(values, key)


def interval_of(values: Values, key: str) -> str:
    """Show the interval of a figure."""
    return numbers.interval(values.get(f"{key}_ci_low"), values.get(f"{key}_ci_high"))


def _passed(values: Values) -> str:
    return numbers.share(values.get("pass_rate_with_failures", values.get("pass_rate")))


def _context(values: Values) -> str:
    saved = values.get("context_compression")
    if saved is not None:
        return numbers.change(-saved)
    reported = values.get("reported_compression")
    return UNKNOWN if reported is None else f"{numbers.change(-reported)} {REPORTED}"


def _tokens(values: Values) -> str:
    before, after = values.get("mean_context_tokens_in"), values.get("mean_context_tokens_out")
    if before is not None:
        return f"{numbers.count(before)} → {numbers.count(after)}"
    before, after = values.get("mean_direct_prompt_tokens"), values.get("mean_own_prompt_tokens")
    if before is None:
        return numbers.MISSING
    return f"{numbers.count(before)} → {numbers.count(after)} {REPORTED}"


def _cost(values: Values) -> str:
    """Show what a system's rows cost in all, and each; at least that, if it is not all known."""
    whole, each = values.get("cost_usd"), values.get("mean_cost_usd")
    if whole is None:
        return "unknown" if values.get("num_cost_unknown") else numbers.MISSING
    if values.get("num_cost_unknown"):
        return f"≥ {numbers.usd(whole)}"
    return numbers.usd(whole) if each is None else f"{numbers.usd(whole)} ({numbers.usd(each)})"


def _reported(name: str) -> Callable[[Values], str]:
    def show(values: Values) -> str:
        mean, whole = values.get(f"mean_{name}"), values.get(f"total_{name}")
        if mean is None or whole is None:
            return numbers.count(mean)
        return f"{numbers.count(mean)} ({numbers.count(whole)})"

    return show


def _likelihood(values: Values) -> str:
    """Show how much of the answer's likelihood is kept, with its interval."""
    kept = values.get("likelihood_retention")
    if kept is None:
        return numbers.MISSING
    low, high = (values.get(f"likelihood_retention_ci_{end}") for end in ("low", "high"))
    return f"{kept:.2f} {numbers.interval(low, high)}".strip()


# A judge's mean is what its owner pays for, whichever score counts.
_JUDGES = ("judge_score", "memory_judge")

GEOMETRIC = Column("Geometric mean", ("geometric_mean",), _one("geometric_mean", numbers.score))
HEADLINE = (
    Column("Score", ("mean_score_with_failures", "mean_score"), _score),
    Column("95% CI", ("mean_score_with_failures_ci_low", "mean_score_ci_low"), _interval),
    GEOMETRIC,
    Column("Effective length", ("effective_length",), _one("effective_length", numbers.count)),
    Column("Passed", ("pass_rate_with_failures", "pass_rate"), _passed),
    *(
        Column(name, (f"mean_score:{name}",), _one(f"mean_score:{name}", numbers.score))
        for name in _JUDGES
    ),
    Column("Likelihood kept", ("likelihood_retention",), _likelihood),
    Column("Context", ("context_compression",), _context),
    Column("Tokens", ("mean_context_tokens_in", "mean_direct_prompt_tokens"), _tokens),
    Column("p50", ("latency_median",), _one("latency_median", numbers.seconds)),
    Column("p95", ("latency_p95",), _one("latency_p95", numbers.seconds)),
    Column(
        "Ingest/turn", ("ingest_per_turn_median",), _one("ingest_per_turn_median", numbers.seconds)
    ),
    Column("Prompt (sum)", ("mean_prompt_tokens",), _reported("prompt_tokens")),
    Column("Answer (sum)", ("mean_completion_tokens",), _reported("completion_tokens")),
    Column("US$ (each)", ("cost_usd", "num_cost_unknown"), _cost),
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
        shown.update(BUILTIN_KEYS)
    hidden = (*_OTHER_TABLES, *(() if all_keys else _EVERY_SCORE))
    for key in main_keys(summary):
        if key not in shown and not key.startswith(hidden):
            columns.append(Column(key, (key,), _metric(key)))
    return columns


def ordered_keys(summary: Mapping[str, Iterable[str]]) -> list[str]:
    """Return every metric key: those of built-in metrics in their order, then the others'.

    A summary that crossed the wire has lost its order, so it cannot be relied on.
    """
    present = {key for values in summary.values() for key in values}
    known = [key for key in BUILTIN_KEYS if key in present]
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
    prefix = type_prefix(summary, score_field)
    others = {*BUILTIN_KEYS, f"{prefix}mean"}
    return [key for key in main_keys(summary) if key.startswith(prefix) and key not in others]


def type_prefix(summary: Summary, score_field: str) -> str:
    """Return what the keys of that breakdown begin with.

    The score's name, where the metric was told to take it; else each row's own score counts.
    """
    own = f"{score_field}_"
    return own if any(f"{own}mean" in values for values in summary.values()) else "score_"
