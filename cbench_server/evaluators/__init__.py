"""The evaluators that exist; the registry registers `EVALUATORS`."""

from cbench_server.evaluators.answer_quality import AnswerQuality
from cbench_server.evaluators.context_retention import ContextRetention
from cbench_server.evaluators.references import references
from cbench_server.evaluators.score_info import ScoreInfo

EVALUATORS = {
    AnswerQuality.name: AnswerQuality,
    ContextRetention.name: ContextRetention,
}

__all__ = ["EVALUATORS", "AnswerQuality", "ContextRetention", "ScoreInfo", "references"]
