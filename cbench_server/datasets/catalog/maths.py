"""Mathematics: word problems and competition problems with one final answer."""

from cbench_server.datasets.catalog.fields import as_text
from cbench_server.datasets.hub.sources import Part, Row, by_config, each, each_of_config
from cbench_server.datasets.protocol import SAME, Aggregation, DatasetProtocol, differs, use
from cbench_server.datasets.record import hub_dataset
from cbench_server.texts.boxes import last_boxes
from cbench_server.types import Example


def _gsm8k(row: Row, index: int) -> Example:
    return {
        "id": index,
        "context": row["question"],
        "answer": row["answer"].rpartition("####")[2].strip(),
        "reasoning": row["answer"],
    }


GSM8K = hub_dataset(
    "gsm8k",
    by_config("openai/gsm8k", ("main", "socratic"), "test"),
    each(_gsm8k),
    default_config="main",
    family="maths",
    protocol=DatasetProtocol(
        follows="EleutherAI/lm-evaluation-harness, gsm8k (flexible-extract, strict-match)",
        shown=("context",),
        withheld=("answer", "reasoning"),
        extraction="The last number of the response; for gsm8k_strict the one after ####.",
        evaluators=use("math-equivalence", rule="gsm8k"),
        primary_score="gsm8k_flexible",
    ),
    description="Grade school word problems in English.",
    size=1319,
    licence="MIT",
    citation="Cobbe et al. 2021, arXiv:2110.14168",
)


def _mgsm(row: Row, index: int, config: str) -> Example:
    return {
        "id": index,
        "context": row["question"],
        "answer": as_text(row["answer_number"]),
        "language": config,
    }


_MGSM = DatasetProtocol(
    follows="EleutherAI/lm-evaluation-harness, mgsm (flexible-extract)",
    shown=("context", "language"),
    extraction="The last number of the response, without its punctuation.",
    evaluators=use("math-equivalence", rule="mgsm"),
    primary_score="mgsm_flexible",
    groups=("language",),
    aggregate=Aggregation(configs="macro"),
)


MGSM = hub_dataset(
    "mgsm",
    by_config(
        "juletxara/mgsm",
        ("bn", "de", "en", "es", "fr", "ja", "ru", "sw", "te", "th", "zh"),
        "test",
    ),
    each_of_config(_mgsm),
    default_config="en",
    family="maths",
    protocol=_MGSM,
    description="Grade school word problems in eleven languages.",
    size=250,
    licence="CC BY-SA 4.0",
    citation="Shi et al. 2022, arXiv:2210.03057",
)


def _math(row: Row, index: int) -> Example:
    return {
        "id": row.get("unique_id") or index,
        "context": row["problem"],
        "answer": row.get("answer") or _boxed(row["solution"]),
        "level": as_text(row.get("level")),
        "type": as_text(row.get("type") or row.get("subject")),
    }


def _boxed(solution: str) -> str:
    boxes = last_boxes(solution)
    return boxes[-1].content if boxes else solution


_MATH = by_config(
    "EleutherAI/hendrycks_math",
    (
        "algebra",
        "counting_and_probability",
        "geometry",
        "intermediate_algebra",
        "number_theory",
        "prealgebra",
        "precalculus",
    ),
    "test",
)


def _math_protocol(config: str) -> DatasetProtocol:
    return DatasetProtocol(
        follows="hendrycks/math, modeling/math_equivalence.py",
        shown=("context", "level", "type"),
        extraction="The last box of the response, else all of it.",
        evaluators=use("math-equivalence", rule="hendrycks"),
        primary_score="math_hendrycks",
        groups=("level", "type"),
        aggregate=Aggregation(configs="micro" if config in _MATH else ""),
        data=differs("A sample that later papers drew: 500 of the 5,000 problems.")
        if config == "500"
        else SAME,
        metric=differs(
            "Other units or names are not equal here where both answers have one, nor 1 2 and 12."
        ),
    )


MATH = hub_dataset(
    "math",
    {
        "": tuple(part for (part,) in _MATH.values()),
        **_MATH,
        "500": (Part(repository="HuggingFaceH4/MATH-500"),),
    },
    each(_math),
    family="maths",
    protocol=_math_protocol,
    description="Competition problems of seven subjects; `math:500` is the usual sample.",
    size=5000,
    licence="MIT",
    citation="Hendrycks et al. 2021, arXiv:2103.03874",
)

RECORDS = (GSM8K, MGSM, MATH)
