"""Pass-at-k: how often one of several tries is good enough."""

import math
from typing import TYPE_CHECKING

from cbench_server.metrics.protocol import FrameMetric, Values
from cbench_server.metrics.stats.estimate import estimate_keys

if TYPE_CHECKING:
    from cbench_server.metrics.stats.frame import Frame

_KS = (1, 2, 3, 5, 10, 20, 50, 100)


class PassAtK(FrameMetric):
    """Gives `pass_at_<k>` for a run with repeats: the chance that one of `k` tries passes.

    Unbiased: with `n` tries of which `c` pass, an example counts
    1 - C(n - c, k) / C(n, k), instead of whether its first `k` had one. A try
    that failed on the system's side did not pass; an example with fewer than
    `k` tries is left out. Nothing is given for a run without repeats.
    """

    name = "pass-at-k"
    description = "Chance that one of k tries reaches the threshold; needs repeats."
    keys = estimate_keys("pass_at_<k>")

    def __init__(self, threshold: float = 0.7, score_field: str | None = None) -> None:
        self.threshold = float(threshold)
        self.score_field = score_field

    def over(self, frame: "Frame") -> Values:
        if not frame.has_repeats:
            return {}
        rows = frame.scored(self.score_field)
        tries, passes, clusters = frame.by_example(
            rows.passed(self.threshold), rows.is_scored | rows.is_failed
        )
        most = int(tries.max(initial=0))
        values: Values = {}
        for k in sorted({k for k in _KS if k < most} | {most} - {0}):
            enough = tries >= k
            chances = [
                pass_chance(int(n), int(c), k)
                for n, c in zip(tries[enough], passes[enough], strict=True)
            ]
            estimate = frame.mean_by_example(chances, clusters[enough])
            values |= estimate.named(f"pass_at_{k}")
        return values


def pass_chance(tries: int, passes: int, k: int) -> float:
    """Return the chance that `k` of the tries, drawn without replacement, hold a pass."""
    return 1.0 - math.comb(tries - passes, k) / math.comb(tries, k)
