"""Mathematics: word problems and competition problems with one final answer."""

from functools import partial

from cbench_server.datasets.catalog.fields import as_text
from cbench_server.datasets.hub.sources import Part, Row, by_config, each
from cbench_server.datasets.record import hub_dataset
from cbench_server.texts.boxes import last_boxes
from cbench_server.types import Example

_dataset = partial(
    hub_dataset,
    family="maths",
    evaluators=("answer-quality", "math-equivalence"),
    primary_score="math_equiv",
)


def _gsm8k(row: Row, index: int) -> Example:
    return {
        "id": index,
        "context": row["question"],
        "question": row["question"],
        "answer": row["answer"].rpartition("####")[2].strip(),
        "reasoning": row["answer"],
    }


GSM8K = _dataset(
    "gsm8k",
    by_config("openai/gsm8k", ("main", "socratic"), "test"),
    each(_gsm8k),
    default_config="main",
    description="Grade school word problems in English.",
    size=1319,
    licence="MIT",
    citation="Cobbe et al. 2021, arXiv:2110.14168",
)


def _mgsm(row: Row, index: int) -> Example:
    return {
        "id": index,
        "context": row["question"],
        "question": row["question"],
        "answer": as_text(row["answer_number"]),
    }


MGSM = _dataset(
    "mgsm",
    by_config(
        "juletxara/mgsm",
        ("bn", "de", "en", "es", "fr", "ja", "ru", "sw", "te", "th", "zh"),
        "test",
    ),
    each(_mgsm),
    default_config="en",
    description="Grade school word problems in eleven languages.",
    size=250,
    licence="CC BY-SA 4.0",
    citation="Shi et al. 2022, arXiv:2210.03057",
)


def _math(row: Row, index: int) -> Example:
    return {
        "id": index,
        "context": row["problem"],
        "question": row["problem"],
        "answer": row.get("answer") or _boxed(row["solution"]),
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

MATH = _dataset(
    "math",
    {
        "": tuple(part for (part,) in _MATH.values()),
        **_MATH,
        "500": (Part(repository="HuggingFaceH4/MATH-500"),),
    },
    each(_math),
    description="Competition problems of seven subjects; `math:500` is the usual sample.",
    size=5000,
    licence="MIT",
    citation="Hendrycks et al. 2021, arXiv:2103.03874",
)

RECORDS = (GSM8K, MGSM, MATH)
