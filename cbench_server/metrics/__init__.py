"""The metrics that exist; the registry registers `METRICS`."""

from cbench_server.metrics.compression_ratio import CompressionRatio
from cbench_server.metrics.cost_of_pass import CostOfPass
from cbench_server.metrics.every_score import EveryScore
from cbench_server.metrics.geometric_mean import GeometricMean
from cbench_server.metrics.ifeval_accuracy import IFEvalAccuracy
from cbench_server.metrics.latency import Latency
from cbench_server.metrics.mean_score import MeanScore
from cbench_server.metrics.model_usage import ModelUsage
from cbench_server.metrics.padded_answers import PaddedAnswers
from cbench_server.metrics.pareto_rank import ParetoRank
from cbench_server.metrics.pass_at_k import PassAtK
from cbench_server.metrics.pass_rate import PassRate
from cbench_server.metrics.per_dataset import PerDatasetBreakdown
from cbench_server.metrics.per_qa_type import PerQAType
from cbench_server.metrics.summary import Summarizer, summarize
from cbench_server.metrics.token_efficiency import TokenEfficiency

METRICS = {
    MeanScore.name: MeanScore,
    EveryScore.name: EveryScore,
    PaddedAnswers.name: PaddedAnswers,
    PassRate.name: PassRate,
    PassAtK.name: PassAtK,
    CompressionRatio.name: CompressionRatio,
    CostOfPass.name: CostOfPass,
    Latency.name: Latency,
    ModelUsage.name: ModelUsage,
    GeometricMean.name: GeometricMean,
    IFEvalAccuracy.name: IFEvalAccuracy,
    PerDatasetBreakdown.name: PerDatasetBreakdown,
    PerQAType.name: PerQAType,
    TokenEfficiency.name: TokenEfficiency,
    ParetoRank.name: ParetoRank,
}

__all__ = [
    "METRICS",
    "CompressionRatio",
    "CostOfPass",
    "EveryScore",
    "GeometricMean",
    "IFEvalAccuracy",
    "Latency",
    "MeanScore",
    "ModelUsage",
    "PaddedAnswers",
    "ParetoRank",
    "PassAtK",
    "PassRate",
    "PerDatasetBreakdown",
    "PerQAType",
    "Summarizer",
    "TokenEfficiency",
    "summarize",
]
