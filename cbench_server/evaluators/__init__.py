"""The evaluators that exist, imported when they are used; the registry registers `EVALUATORS`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cbench_server.lazy_imports import LazyMapping, names_of

if TYPE_CHECKING:
    from cbench_server.evaluators.abstention import Abstention as Abstention
    from cbench_server.evaluators.answer_quality import AnswerQuality as AnswerQuality
    from cbench_server.evaluators.bfcl import BFCL as BFCL
    from cbench_server.evaluators.choice.multiple_choice import (
        MultipleChoiceAccuracy as MultipleChoiceAccuracy,
    )
    from cbench_server.evaluators.code_execution import CodeExecution as CodeExecution
    from cbench_server.evaluators.context_retention import ContextRetention as ContextRetention
    from cbench_server.evaluators.ifeval import IFEvalChecker as IFEvalChecker
    from cbench_server.evaluators.inputs import ScoreInfo as ScoreInfo
    from cbench_server.evaluators.inputs import references as references
    from cbench_server.evaluators.judge.llm_judge import LLMJudge as LLMJudge
    from cbench_server.evaluators.judge.memory_judge import MemoryJudge as MemoryJudge
    from cbench_server.evaluators.math.equivalence import MathEquivalence as MathEquivalence
    from cbench_server.evaluators.nli_label_match import NLILabelMatch as NLILabelMatch
    from cbench_server.evaluators.summarization_quality import (
        SummarizationQuality as SummarizationQuality,
    )
    from cbench_server.evaluators.truthfulqa import TruthfulQA as TruthfulQA

_HOMES = {
    "Abstention": "abstention",
    "AnswerQuality": "answer_quality",
    "BFCL": "bfcl",
    "MultipleChoiceAccuracy": "choice.multiple_choice",
    "CodeExecution": "code_execution",
    "ContextRetention": "context_retention",
    "IFEvalChecker": "ifeval",
    "LLMJudge": "judge.llm_judge",
    "MemoryJudge": "judge.memory_judge",
    "MathEquivalence": "math.equivalence",
    "NLILabelMatch": "nli_label_match",
    "ScoreInfo": "inputs",
    "references": "inputs",
    "SummarizationQuality": "summarization_quality",
    "TruthfulQA": "truthfulqa",
}

__getattr__ = names_of(__name__, _HOMES)

EVALUATORS: Mapping[str, Any] = LazyMapping(
    __getattr__,
    {
        "abstention": "Abstention",
        "answer-quality": "AnswerQuality",
        "bfcl": "BFCL",
        "code-execution": "CodeExecution",
        "context-retention": "ContextRetention",
        "ifeval": "IFEvalChecker",
        "llm-judge": "LLMJudge",
        "math-equivalence": "MathEquivalence",
        "memory-judge": "MemoryJudge",
        "multiple-choice": "MultipleChoiceAccuracy",
        "nli-label-match": "NLILabelMatch",
        "summarization-quality": "SummarizationQuality",
        "truthfulqa": "TruthfulQA",
    },
)

__all__ = [
    "BFCL",
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
    "TruthfulQA",
    "references",
]
