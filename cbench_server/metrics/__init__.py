"""The metrics that exist; the registry registers `METRICS`."""

from cbench_server.metrics.compression_ratio import CompressionRatio
from cbench_server.metrics.conduct import Conduct
from cbench_server.metrics.cost_of_pass import CostOfPass
from cbench_server.metrics.effective_length import EffectiveLength
from cbench_server.metrics.every_score import EveryScore
from cbench_server.metrics.geometric_mean import GeometricMean
from cbench_server.metrics.ifeval_accuracy import IFEvalAccuracy
from cbench_server.metrics.latency import Latency
from cbench_server.metrics.likelihood_retention import LikelihoodRetention
from cbench_server.metrics.mean_score import MeanScore
from cbench_server.metrics.model_cost import ModelCost
from cbench_server.metrics.model_usage import ModelUsage
from cbench_server.metrics.padded_answers import PaddedAnswers
from cbench_server.metrics.pareto_rank import ParetoRank
from cbench_server.metrics.pass_at_k import PassAtK
from cbench_server.metrics.pass_rate import PassRate
from cbench_server.metrics.per_dataset import PerDatasetBreakdown
from cbench_server.metrics.per_group import PerGroup
from cbench_server.metrics.per_qa_type import PerQAType
from cbench_server.metrics.suites import Suites
from cbench_server.metrics.summary import Summarizer, summarize
from cbench_server.metrics.token_efficiency import TokenEfficiency

METRICS = {
    MeanScore.name: MeanScore,
    EveryScore.name: EveryScore,
    PaddedAnswers.name: PaddedAnswers,
    Conduct.name: Conduct,
    PassRate.name: PassRate,
    PassAtK.name: PassAtK,
    CompressionRatio.name: CompressionRatio,
    CostOfPass.name: CostOfPass,
    Latency.name: Latency,
    LikelihoodRetention.name: LikelihoodRetention,
    ModelUsage.name: ModelUsage,
    ModelCost.name: ModelCost,
    GeometricMean.name: GeometricMean,
    EffectiveLength.name: EffectiveLength,
    IFEvalAccuracy.name: IFEvalAccuracy,
    PerDatasetBreakdown.name: PerDatasetBreakdown,
    PerQAType.name: PerQAType,
    PerGroup.name: PerGroup,
    Suites.name: Suites,
    TokenEfficiency.name: TokenEfficiency,
    ParetoRank.name: ParetoRank,
}

__all__ = [
    "METRICS",
    "CompressionRatio",
    "Conduct",
    "CostOfPass",
    "EffectiveLength",
    "EveryScore",
    "GeometricMean",
    "IFEvalAccuracy",
    "Latency",
    "LikelihoodRetention",
    "MeanScore",
    "ModelCost",
    "ModelUsage",
    "PaddedAnswers",
    "ParetoRank",
    "PassAtK",
    "PassRate",
    "PerDatasetBreakdown",
    "PerGroup",
    "PerQAType",
    "Suites",
    "Summarizer",
    "TokenEfficiency",
    "summarize",
]
