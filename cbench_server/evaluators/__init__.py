"""The evaluators that exist; the registry registers `EVALUATORS`."""

from cbench_server.evaluators.abstention import Abstention
from cbench_server.evaluators.answer_quality import AnswerQuality
from cbench_server.evaluators.code_execution import CodeExecution
from cbench_server.evaluators.context_retention import ContextRetention
from cbench_server.evaluators.ifeval import IFEvalChecker
from cbench_server.evaluators.llm_judge import LLMJudge
from cbench_server.evaluators.math_equivalence import MathEquivalence
from cbench_server.evaluators.memory_judge import MemoryJudge
from cbench_server.evaluators.multiple_choice import MultipleChoiceAccuracy
from cbench_server.evaluators.nli_label_match import NLILabelMatch
from cbench_server.evaluators.references import references
from cbench_server.evaluators.score_info import ScoreInfo
from cbench_server.evaluators.summarization_quality import SummarizationQuality

EVALUATORS = {
    Abstention.name: Abstention,
    AnswerQuality.name: AnswerQuality,
    CodeExecution.name: CodeExecution,
    ContextRetention.name: ContextRetention,
    IFEvalChecker.name: IFEvalChecker,
    LLMJudge.name: LLMJudge,
    MathEquivalence.name: MathEquivalence,
    MemoryJudge.name: MemoryJudge,
    MultipleChoiceAccuracy.name: MultipleChoiceAccuracy,
    NLILabelMatch.name: NLILabelMatch,
    SummarizationQuality.name: SummarizationQuality,
}

__all__ = [
    "EVALUATORS",
    "Abstention",
    "AnswerQuality",
    "CodeExecution",
    "ContextRetention",
    "IFEvalChecker",
    "LLMJudge",
    "MathEquivalence",
    "MemoryJudge",
    "MultipleChoiceAccuracy",
    "NLILabelMatch",
    "ScoreInfo",
    "SummarizationQuality",
    "references",
]
