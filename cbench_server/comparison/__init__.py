"""Comparisons: whether A is better than B, by how much, at what cost, and how sure that is."""

from typing import TYPE_CHECKING

from cbench_server.lazy_imports import names_of

if TYPE_CHECKING:
    from cbench_server.comparison.comparison import compare as compare
    from cbench_server.comparison.comparison import compare_two as compare_two
    from cbench_server.comparison.values import Axis as Axis
    from cbench_server.comparison.values import Comparison as Comparison
    from cbench_server.comparison.values import CostChange as CostChange
    from cbench_server.comparison.values import Flip as Flip
    from cbench_server.comparison.values import Front as Front
    from cbench_server.comparison.values import FrontPoint as FrontPoint
    from cbench_server.comparison.values import PairedDifference as PairedDifference
    from cbench_server.metrics.outcomes import score_infos as score_infos
    from cbench_server.metrics.stats.estimate import Estimate as Estimate

# Imported on first use: the flags of `cbench gate` need no more than its policies.
__getattr__ = names_of(
    __name__,
    {
        "Axis": "values",
        "Comparison": "values",
        "CostChange": "values",
        "Estimate": "values",
        "Flip": "values",
        "Front": "values",
        "FrontPoint": "values",
        "PairedDifference": "values",
        "compare": "comparison",
        "compare_two": "comparison",
        "score_infos": "comparison",
    },
)

__all__ = [
    "Axis",
    "Comparison",
    "CostChange",
    "Estimate",
    "Flip",
    "Front",
    "FrontPoint",
    "PairedDifference",
    "compare",
    "compare_two",
    "score_infos",
]
