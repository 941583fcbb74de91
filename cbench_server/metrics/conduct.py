"""Conduct: what systems did that no score shows, as counts of rows."""

from array import array
from typing import TYPE_CHECKING

from cbench_server.metrics.protocol import FrameMetric, Values
from cbench_server.metrics.stats.columns import Extra
from cbench_server.results import OVER_BUDGET, RETRIEVAL_POINTERS, EvalRow

if TYPE_CHECKING:
    from cbench_server.metrics.stats.frame import Frame

_HAS_CONTEXT = Extra(lambda row: row.context_tokens_out is not None, lambda: array("b"))
_UNCHANGED = Extra(lambda row: is_unchanged(row), lambda: array("b"))
_POINTS = Extra(lambda row: RETRIEVAL_POINTERS in row.marks, lambda: array("b"))
_OVER = Extra(
    lambda row: (row.context_tokens_out or 0) if OVER_BUDGET in row.marks else 0,
    lambda: array("q"),
)


class Conduct(FrameMetric):
    """Gives counts of rows: with a context, left as they were, with pointers, over the budget.

    `num_asked_twice` and `num_differed`, by which a system is seen not to be
    deterministic, are added when a run ends.
    """

    name = "conduct"
    description = "Rows that a system left as they were, with retrieval pointers, or over budget."
    keys = (
        "num_with_context",
        "num_unchanged",
        "num_with_pointers",
        "num_over_budget",
        "largest_over_budget",
        "num_asked_twice",
        "num_differed",
    )
    extras = (_HAS_CONTEXT, _UNCHANGED, _POINTS, _OVER)

    def over(self, frame: "Frame") -> Values:
        over = frame.extra(_OVER)
        return {
            "num_with_context": float(frame.extra(_HAS_CONTEXT).sum()),
            "num_unchanged": float(frame.extra(_UNCHANGED).sum()),
            "num_with_pointers": float(frame.extra(_POINTS).sum()),
            "num_over_budget": float((over > 0).sum()),
            "largest_over_budget": float(over.max()) if over.any() else None,
            "num_asked_twice": 0.0,
            "num_differed": 0.0,
        }


def is_unchanged(row: EvalRow) -> bool:
    """Whether a system returned the context as it came, and no answer of its own."""
    if "conversation_id" in row.metadata:
        return False  # A memory is given no context that it could leave as it is.
    return "context" in row.carried and (row.context_only or row.was_read)
