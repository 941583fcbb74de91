"""Reported compression: what a proxy saves, by the prompt tokens that endpoints report."""

from collections.abc import Iterable

from cbench_server.metrics.protocol import Values
from cbench_server.metrics.stats.estimate import estimate_keys
from cbench_server.results import EvalRow

KEYS = (
    *estimate_keys("reported_compression"),
    "mean_own_prompt_tokens",
    "mean_direct_prompt_tokens",
    "num_reported_pairs",
)
Key = tuple[int, int]
"""The ordinal of an example, and the repeat."""
Reports = dict[Key, tuple[int, tuple[str, str]]]
"""Prompt tokens as reported for each row, with the group it belongs to."""


def read_reports(rows: Iterable[EvalRow]) -> Reports:
    """Return what was reported for rows; those without a report, or an answer, are left out."""
    found: Reports = {}
    for row in rows:
        tokens = (row.usage or {}).get("prompt_tokens")
        if row.failure is None and isinstance(tokens, int) and tokens > 0:
            group = (row.dataset, row.group) if row.group else ("", str(row.ordinal))
            found[row.ordinal, row.repeat] = tokens, group
    return found


def reported_compression(own: Reports, direct: Reports) -> Values:
    """Set a proxy against the same model without it: 1 - its prompt tokens / the model's.

    Both are summed over the rows for which both report; the interval is by the
    bootstrap over groups, as for every ratio of sums.
    """
    import numpy as np

    from cbench_server.metrics.stats.bootstrap import bootstrap, sums_by_cluster

    keys = [key for key in own if key in direct]
    if not keys:
        return dict.fromkeys(KEYS)
    numbers: dict[tuple[str, str], int] = {}
    clusters = np.array([numbers.setdefault(own[key][1], len(numbers)) for key in keys])
    mine = np.array([own[key][0] for key in keys], np.float64)
    theirs = np.array([direct[key][0] for key in keys], np.float64)
    saved = bootstrap(
        sums_by_cluster([mine, theirs], clusters), lambda sums: 1 - sums[:, 0] / sums[:, 1]
    )
    return {
        **saved.named("reported_compression"),
        "mean_own_prompt_tokens": float(mine.mean()),
        "mean_direct_prompt_tokens": float(theirs.mean()),
        "num_reported_pairs": float(len(keys)),
    }
