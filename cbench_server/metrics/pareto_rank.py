"""Pareto rank: which systems no other beats on both quality and cost."""

from typing import TYPE_CHECKING

from cbench_server.metrics.protocol import FrameMetric, SystemValues, Values

if TYPE_CHECKING:
    from cbench_server.metrics.stats.frame import Frame


_MEAN = "mean_score_with_failures"


class ParetoRank(FrameMetric):
    """Gives `pareto_rank`: 1 on the front, 2 on the front without those, and so on.

    Quality counts failures of the system as 0. A rank needs all systems, so
    `over` gives nothing and the summariser calls `across` once every system has
    its values.
    """

    name = "pareto-rank"
    description = "Front layer of quality against cost among the systems of a run."
    keys = ("pareto_rank",)

    def __init__(
        self,
        quality_field: str = _MEAN,
        cost_field: str = "cost_of_pass",
    ) -> None:
        """The mean score is the quality where no system has the field that is named."""
        self.quality_field = quality_field
        self.cost_field = cost_field

    def over(self, frame: "Frame") -> Values:
        return {}

    def across(self, summary: SystemValues) -> dict[str, Values]:
        """Rank the systems of a summary; None for a system without quality or cost."""
        has_quality = any(values.get(self.quality_field) is not None for values in summary.values())
        quality = self.quality_field if has_quality else _MEAN
        ranks = self.rank_systems(summary, quality, self.cost_field)
        return {
            system: {"pareto_rank": None if rank is None else float(rank)}
            for system, rank in ranks.items()
        }

    @staticmethod
    def rank_systems(
        summary: SystemValues,
        quality_field: str = "mean_score",
        cost_field: str = "cost_of_pass",
    ) -> dict[str, int | None]:
        """Return each system's front layer: more quality is better, less cost is better."""
        ranks: dict[str, int | None] = dict.fromkeys(summary)
        points: dict[str, tuple[float, float]] = {}
        for system, values in summary.items():
            quality, cost = values.get(quality_field), values.get(cost_field)
            if quality is not None and cost is not None:
                points[system] = (quality, cost)
        layer = 0
        while points:
            layer += 1
            front = [
                system
                for system, point in points.items()
                if not any(_dominates(other, point) for other in points.values())
            ]
            for system in front:
                ranks[system] = layer
                del points[system]
        return ranks


def _dominates(other: tuple[float, float], point: tuple[float, float]) -> bool:
    return other[0] >= point[0] and other[1] <= point[1] and other != point
