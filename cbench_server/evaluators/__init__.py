"""The evaluators that exist, imported when they are used; the registry registers `EVALUATORS`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cbench_server.lazy_imports import LazyMapping, names_of

if TYPE_CHECKING:
    from cbench_server.evaluators.abstention import Abstention as Abstention
    from cbench_server.evaluators.alpaca_eval import AlpacaEval as AlpacaEval
    from cbench_server.evaluators.answer_likelihood import AnswerLikelihood as AnswerLikelihood
    from cbench_server.evaluators.answer_quality import AnswerQuality as AnswerQuality
    from cbench_server.evaluators.bbh import BigBenchHard as BigBenchHard
    from cbench_server.evaluators.bfcl import BFCL as BFCL
    from cbench_server.evaluators.choice.multiple_choice import (
        MultipleChoiceAccuracy as MultipleChoiceAccuracy,
    )
    from cbench_server.evaluators.code_execution import CodeExecution as CodeExecution
    from cbench_server.evaluators.context_retention import ContextRetention as ContextRetention
    from cbench_server.evaluators.drop.evaluator import Drop as Drop
    from cbench_server.evaluators.evidence_recall import EvidenceRecall as EvidenceRecall
    from cbench_server.evaluators.helm_f1 import HelmF1 as HelmF1
    from cbench_server.evaluators.hotpotqa import HotpotQA as HotpotQA
    from cbench_server.evaluators.ifeval import IFEvalChecker as IFEvalChecker
    from cbench_server.evaluators.infinitebench import InfiniteBench as InfiniteBench
    from cbench_server.evaluators.inputs import ScoreInfo as ScoreInfo
    from cbench_server.evaluators.inputs import references as references
    from cbench_server.evaluators.judge.llm_judge import LLMJudge as LLMJudge
    from cbench_server.evaluators.judge.memory_judge import MemoryJudge as MemoryJudge
    from cbench_server.evaluators.locomo import LoCoMo as LoCoMo
    from cbench_server.evaluators.longbench.evaluator import LongBench as LongBench
    from cbench_server.evaluators.math.equivalence import MathEquivalence as MathEquivalence
    from cbench_server.evaluators.musique import MuSiQue as MuSiQue
    from cbench_server.evaluators.nli_label_match import NLILabelMatch as NLILabelMatch
    from cbench_server.evaluators.nq_open import NQOpen as NQOpen
    from cbench_server.evaluators.rouge.evaluator import Rouge as Rouge
    from cbench_server.evaluators.string_match import StringMatch as StringMatch
    from cbench_server.evaluators.subspan_em import SubspanExactMatch as SubspanExactMatch
    from cbench_server.evaluators.summarization_quality import (
        SummarizationQuality as SummarizationQuality,
    )
    from cbench_server.evaluators.swebench import SWEBench as SWEBench
    from cbench_server.evaluators.triviaqa import TriviaQA as TriviaQA
    from cbench_server.evaluators.truthfulqa import TruthfulQA as TruthfulQA

_HOMES = {
    "Abstention": "abstention",
    "AlpacaEval": "alpaca_eval",
    "AnswerLikelihood": "answer_likelihood",
    "AnswerQuality": "answer_quality",
    "BFCL": "bfcl",
    "MultipleChoiceAccuracy": "choice.multiple_choice",
    "CodeExecution": "code_execution",
    "ContextRetention": "context_retention",
    "IFEvalChecker": "ifeval",
    "LLMJudge": "judge.llm_judge",
    "MemoryJudge": "judge.memory_judge",
    "MathEquivalence": "math.equivalence",
    "MuSiQue": "musique",
    "NLILabelMatch": "nli_label_match",
    "NQOpen": "nq_open",
    "BigBenchHard": "bbh",
    "Drop": "drop.evaluator",
    "EvidenceRecall": "evidence_recall",
    "HelmF1": "helm_f1",
    "HotpotQA": "hotpotqa",
    "InfiniteBench": "infinitebench",
    "LoCoMo": "locomo",
    "LongBench": "longbench.evaluator",
    "Rouge": "rouge.evaluator",
    "StringMatch": "string_match",
    "SubspanExactMatch": "subspan_em",
    "SWEBench": "swebench",
    "TriviaQA": "triviaqa",
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
        "alpaca-eval": "AlpacaEval",
        "answer-likelihood": "AnswerLikelihood",
        "answer-quality": "AnswerQuality",
        "bbh": "BigBenchHard",
        "bfcl": "BFCL",
        "code-execution": "CodeExecution",
        "context-retention": "ContextRetention",
        "drop": "Drop",
        "evidence-recall": "EvidenceRecall",
        "helm-f1": "HelmF1",
        "hotpotqa": "HotpotQA",
        "ifeval": "IFEvalChecker",
        "infinitebench": "InfiniteBench",
        "llm-judge": "LLMJudge",
        "locomo": "LoCoMo",
        "longbench": "LongBench",
        "math-equivalence": "MathEquivalence",
        "memory-judge": "MemoryJudge",
        "multiple-choice": "MultipleChoiceAccuracy",
        "musique": "MuSiQue",
        "nli-label-match": "NLILabelMatch",
        "nq-open": "NQOpen",
        "rouge": "Rouge",
        "string-match": "StringMatch",
        "subspan-em": "SubspanExactMatch",
        "summarization-quality": "SummarizationQuality",
        "swebench": "SWEBench",
        "triviaqa": "TriviaQA",
        "truthfulqa": "TruthfulQA",
    },
)

__all__ = [
    "BFCL",
    "EVALUATORS",
    "Abstention",
    "AlpacaEval",
    "AnswerLikelihood",
    "AnswerQuality",
    "BigBenchHard",
    "CodeExecution",
    "ContextRetention",
    "Drop",
    "EvidenceRecall",
    "HelmF1",
    "HotpotQA",
    "IFEvalChecker",
    "InfiniteBench",
    "LLMJudge",
    "LoCoMo",
    "LongBench",
    "MathEquivalence",
    "MemoryJudge",
    "MuSiQue",
    "MultipleChoiceAccuracy",
    "NLILabelMatch",
    "NQOpen",
    "Rouge",
    "SWEBench",
    "ScoreInfo",
    "StringMatch",
    "SubspanExactMatch",
    "SummarizationQuality",
    "TriviaQA",
    "TruthfulQA",
    "references",
]
