"""Multiple choice: a question and its choices are the context, one letter is the answer."""

from hashlib import blake2b

from cbench_server.datasets.catalog.fields import as_index, choice
from cbench_server.datasets.catalog.mmlu_subjects import MMLU_SUBJECTS
from cbench_server.datasets.hub.sources import Part, Row, by_config, each
from cbench_server.datasets.record import hub_dataset
from cbench_server.types import Example

_EVALUATORS = ("answer-quality", "multiple-choice")


def _mmlu(row: Row, index: int) -> Example | None:
    fields = choice(row["question"], row["choices"], as_index(row["answer"]))
    return fields and {"id": index, **fields}


MMLU = hub_dataset(
    "mmlu",
    by_config("cais/mmlu", ("all", *MMLU_SUBJECTS), "test"),
    each(_mmlu),
    default_config="all",
    description="Exam questions on 57 subjects, four choices each.",
    family="multiple-choice",
    evaluators=_EVALUATORS,
    primary_score="mc_accuracy",
    size=14042,
    licence="MIT",
    citation="Hendrycks et al. 2021, arXiv:2009.03300",
)


def _mmlu_pro(row: Row, index: int) -> Example | None:
    fields = choice(row["question"], row["options"], as_index(row["answer_index"]))
    return fields and {"id": index, **fields}


MMLU_PRO = hub_dataset(
    "mmlu-pro",
    Part(repository="TIGER-Lab/MMLU-Pro"),
    each(_mmlu_pro),
    description="Harder exam questions with up to ten choices.",
    family="multiple-choice",
    evaluators=_EVALUATORS,
    primary_score="mc_accuracy",
    size=12032,
    licence="MIT",
    citation="Wang et al. 2024, arXiv:2406.01574",
)


def _arc(row: Row, index: int) -> Example | None:
    labels = row["choices"]["label"]
    right = labels.index(row["answerKey"]) if row["answerKey"] in labels else -1
    fields = choice(row["question"], row["choices"]["text"], right)
    return fields and {"id": row["id"], **fields}


ARC_CHALLENGE = hub_dataset(
    "arc-challenge",
    Part(repository="allenai/ai2_arc", config="ARC-Challenge"),
    each(_arc),
    default_config="ARC-Challenge",
    description="School science questions that retrieval and co-occurrence get wrong.",
    family="multiple-choice",
    evaluators=_EVALUATORS,
    primary_score="mc_accuracy",
    size=1172,
    licence="CC BY-SA 4.0",
    citation="Clark et al. 2018, arXiv:1803.05457",
)


def _gpqa(row: Row, index: int) -> Example | None:
    right = row["Correct Answer"].strip()
    wrong = [row[f"Incorrect Answer {number}"].strip() for number in (1, 2, 3)]
    choices = sorted([right, *wrong], key=lambda text: _order(index, text))
    fields = choice(row["Question"], choices, choices.index(right))
    return fields and {"id": index, **fields}


def _order(example_id: int, text: str) -> bytes:
    """Shuffle the choices of each example the same way wherever and whenever it is loaded."""
    return blake2b(f"{example_id}:{text}".encode(), digest_size=16).digest()


GPQA = hub_dataset(
    "gpqa",
    by_config("Idavidrein/gpqa", ("gpqa_diamond", "gpqa_main", "gpqa_extended"), "train"),
    each(_gpqa),
    default_config="gpqa_diamond",
    description="Graduate questions in biology, physics and chemistry (gated on the hub).",
    family="multiple-choice",
    evaluators=_EVALUATORS,
    primary_score="mc_accuracy",
    size=198,
    licence="CC BY 4.0",
    citation="Rein et al. 2023, arXiv:2311.12022",
)


def _hellaswag(row: Row, index: int) -> Example | None:
    fields = choice(row["ctx"], row["endings"], as_index(row["label"]))
    given = row.get("ind")
    return fields and {"id": index if given is None else given, **fields}


HELLASWAG = hub_dataset(
    "hellaswag",
    Part(repository="Rowan/hellaswag", split="validation"),
    each(_hellaswag),
    description="How an everyday scene goes on, among four endings.",
    family="multiple-choice",
    evaluators=_EVALUATORS,
    primary_score="mc_accuracy",
    size=10042,
    licence="MIT",
    citation="Zellers et al. 2019, arXiv:1905.07830",
)


def _winogrande(row: Row, index: int) -> Example | None:
    fields = choice(row["sentence"], [row["option1"], row["option2"]], as_index(row["answer"]) - 1)
    return fields and {"id": index, **fields}


WINOGRANDE = hub_dataset(
    "winogrande",
    by_config(
        "allenai/winogrande",
        tuple(f"winogrande_{size}" for size in ("xl", "l", "m", "s", "xs", "debiased")),
        "validation",
    ),
    each(_winogrande),
    default_config="winogrande_xl",
    description="Which of two names fills the blank of a sentence.",
    family="multiple-choice",
    evaluators=_EVALUATORS,
    primary_score="mc_accuracy",
    size=1267,
    licence="CC BY",
    citation="Sakaguchi et al. 2020, arXiv:1907.10641",
)

RECORDS = (MMLU, MMLU_PRO, ARC_CHALLENGE, GPQA, HELLASWAG, WINOGRANDE)
