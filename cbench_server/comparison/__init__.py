"""Is A better than B, by how much, at what cost, and would a sceptic believe it?"""

from cbench_server.comparison.comparing import compare, compare_two
from cbench_server.comparison.values import (
    Axis,
    Comparison,
    CostChange,
    Flip,
    Front,
    FrontPoint,
    PairedDifference,
)
from cbench_server.metrics.estimate import Estimate

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
]
