"""Multiple choice: a question and its choices are the context, one letter is the answer."""

from functools import partial
from hashlib import blake2b

from cbench_server.datasets.catalog.fields import as_index, choice
from cbench_server.datasets.catalog.mmlu_subjects import MMLU_SUBJECTS
from cbench_server.datasets.hub.sources import Part, Row, by_config, each
from cbench_server.datasets.record import hub_dataset
from cbench_server.types import Example

_dataset = partial(
    hub_dataset,
    family="multiple-choice",
    evaluators=("answer-quality", "multiple-choice"),
    primary_score="mc_accuracy",
)


def _mmlu(row: Row, index: int) -> Example | None:
    return choice(index, row["question"], row["choices"], as_index(row["answer"]))


MMLU = _dataset(
    "mmlu",
    by_config("cais/mmlu", ("all", *MMLU_SUBJECTS), "test"),
    each(_mmlu),
    default_config="all",
    description="Exam questions on 57 subjects, four choices each.",
    size=14042,
    licence="MIT",
    citation="Hendrycks et al. 2021, arXiv:2009.03300",
)


def _mmlu_pro(row: Row, index: int) -> Example | None:
    return choice(index, row["question"], row["options"], as_index(row["answer_index"]))


MMLU_PRO = _dataset(
    "mmlu-pro",
    Part(repository="TIGER-Lab/MMLU-Pro"),
    each(_mmlu_pro),
    description="Harder exam questions with up to ten choices.",
    size=12032,
    licence="MIT",
    citation="Wang et al. 2024, arXiv:2406.01574",
)


def _arc(row: Row, index: int) -> Example | None:
    labels = row["choices"]["label"]
    right = labels.index(row["answerKey"]) if row["answerKey"] in labels else -1
    return choice(row["id"], row["question"], row["choices"]["text"], right)


ARC_CHALLENGE = _dataset(
    "arc-challenge",
    Part(repository="allenai/ai2_arc", config="ARC-Challenge"),
    each(_arc),
    default_config="ARC-Challenge",
    description="School science questions that retrieval and co-occurrence get wrong.",
    size=1172,
    licence="CC BY-SA 4.0",
    citation="Clark et al. 2018, arXiv:1803.05457",
)


def _gpqa(row: Row, index: int) -> Example | None:
    right = row["Correct Answer"].strip()
    wrong = [row[f"Incorrect Answer {number}"].strip() for number in (1, 2, 3)]
    choices = sorted([right, *wrong], key=lambda text: _order(index, text))
    return choice(index, row["Question"], choices, choices.index(right))


def _order(example_id: int, text: str) -> bytes:
    """Return a sort key that shuffles the choices of an example the same way on every load."""
    return blake2b(f"{example_id}:{text}".encode(), digest_size=16).digest()


GPQA = _dataset(
    "gpqa",
    by_config("Idavidrein/gpqa", ("gpqa_diamond", "gpqa_main", "gpqa_extended"), "train"),
    each(_gpqa),
    default_config="gpqa_diamond",
    description="Graduate questions in biology, physics and chemistry (gated on the hub).",
    size=198,
    licence="CC BY 4.0",
    citation="Rein et al. 2023, arXiv:2311.12022",
)


def _hellaswag(row: Row, index: int) -> Example | None:
    example_id = index if row.get("ind") is None else row["ind"]
    return choice(example_id, row["ctx"], row["endings"], as_index(row["label"]))


HELLASWAG = _dataset(
    "hellaswag",
    Part(repository="Rowan/hellaswag", split="validation"),
    each(_hellaswag),
    description="How an everyday scene goes on, among four endings.",
    size=10042,
    licence="MIT",
    citation="Zellers et al. 2019, arXiv:1905.07830",
)


def _winogrande(row: Row, index: int) -> Example | None:
    options = [row["option1"], row["option2"]]
    return choice(index, row["sentence"], options, as_index(row["answer"]) - 1)


WINOGRANDE = _dataset(
    "winogrande",
    by_config(
        "allenai/winogrande",
        tuple(f"winogrande_{size}" for size in ("xl", "l", "m", "s", "xs", "debiased")),
        "validation",
    ),
    each(_winogrande),
    default_config="winogrande_xl",
    description="Which of two names fills the blank of a sentence.",
    size=1267,
    licence="CC BY",
    citation="Sakaguchi et al. 2020, arXiv:1907.10641",
)

RECORDS = (MMLU, MMLU_PRO, ARC_CHALLENGE, GPQA, HELLASWAG, WINOGRANDE)
