"""Multiple choice: a question and its choices are the context, one letter is the answer."""

import re
from collections.abc import Iterator
from typing import Any

from cbench_server.datasets.catalog.fields import as_index, as_text, choice, drawn_order
from cbench_server.datasets.catalog.mmlu_subjects import MMLU_CATEGORIES, MMLU_SUBJECTS
from cbench_server.datasets.hub.sources import Access, Part, Row, by_config, each
from cbench_server.datasets.protocol import SAME, Aggregation, Axis, DatasetProtocol, differs, use
from cbench_server.datasets.record import DatasetRecord, hub_dataset
from cbench_server.types import Example

_GENERATED = differs(
    "The letter that is written counts; published figures compare log-likelihoods."
)


def _dataset(
    *given: Any,
    follows: str,
    metric: Axis = SAME,
    extraction: str = "",
    group: str = "",
    data: Axis = SAME,
    category: str = "",
    **about: Any,
) -> DatasetRecord:
    """Describe a dataset of letters; `extraction` is the rule by which one is read.

    Where there is a `category`, the configs are a suite: the mean of all rows, and of those of
    each category.
    """
    said = f"A letter, read by the rules of {extraction}." if extraction else ""
    protocol = DatasetProtocol(
        follows=follows,
        shown=("context", "question", "choices", *([group] if group else [])),
        withheld=("answer", "correct_letter", *([category] if category else [])),
        extraction=said or "The letter that the response settles on.",
        evaluators=use("multiple-choice", **({"extraction": extraction} if extraction else {})),
        primary_score="mc_accuracy",
        groups=(group,) if group else (),
        data=data,
        metric=metric,
        aggregate=Aggregation(configs="micro", bucket=category) if category else Aggregation(),
    )
    return hub_dataset(*given, family="multiple-choice", protocol=protocol, **about)


def _mmlu(row: Row, index: int) -> Example | None:
    example = choice(index, row["question"], row["choices"], as_index(row["answer"]))
    subject = as_text(row.get("subject"))
    about = {"subject": subject, "category": MMLU_CATEGORIES.get(subject, "")}
    return example and {**example, **about}


MMLU = _dataset(
    "mmlu",
    by_config("cais/mmlu", ("all", *MMLU_SUBJECTS), "test"),
    each(_mmlu),
    default_config="all",
    follows="EleutherAI/lm-evaluation-harness, mmlu_generative",
    extraction="mmlu-generative",
    group="subject",
    category="category",
    description="Exam questions on 57 subjects, four choices each.",
    size=14042,
    licence="MIT",
    citation="Hendrycks et al. 2021, arXiv:2009.03300",
)


def _mmlu_pro(row: Row, index: int) -> Example | None:
    given = row.get("question_id")
    example_id = index if given is None else given
    example = choice(example_id, row["question"], row["options"], as_index(row["answer_index"]))
    return example and {**example, "category": as_text(row.get("category"))}


MMLU_PRO = _dataset(
    "mmlu-pro",
    Part(repository="TIGER-Lab/MMLU-Pro"),
    each(_mmlu_pro),
    follows="TIGER-AI-Lab/MMLU-Pro, compute_accuracy.py",
    extraction="mmlu-pro",
    metric=differs(
        "A response without a letter counts 0; extraction=mmlu-pro-published guesses as its tables."
    ),
    group="category",
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
    follows="EleutherAI/lm-evaluation-harness, arc_challenge_chat",
    extraction="arc-chat",
    default_config="ARC-Challenge",
    description="School science questions that retrieval and co-occurrence get wrong.",
    size=1172,
    licence="CC BY-SA 4.0",
    citation="Clark et al. 2018, arXiv:1803.05457",
)


def _gpqa(row: Row, index: int) -> Example | None:
    right = row["Correct Answer"].strip()
    wrong = [row[f"Incorrect Answer {number}"].strip() for number in (1, 2, 3)]
    given = row.get("Record ID")
    example_id = index if given is None else given
    choices = drawn_order(str(example_id), [right, *wrong])
    return choice(example_id, row["Question"], choices, choices.index(right))


GPQA = _dataset(
    "gpqa",
    by_config("Idavidrein/gpqa", ("gpqa_diamond", "gpqa_main", "gpqa_extended"), "train"),
    each(_gpqa),
    follows="EleutherAI/lm-evaluation-harness, gpqa (flexible-extract)",
    extraction="lm-eval",
    data=differs("The order of the options is drawn by a row's id; lm-eval draws its own."),
    default_config="gpqa_diamond",
    description="Graduate questions in biology, physics and chemistry (gated on the hub).",
    size=198,
    licence="CC BY 4.0",
    citation="Rein et al. 2023, arXiv:2311.12022",
)


_BRACKETS = re.compile(r"\[[^\]]*\]")


def _hellaswag(rows: Iterator[Row], access: Access) -> Iterator[Example]:
    seen: set[object] = set()
    for index, row in enumerate(rows):
        # Nothing says that the source's numbers are unique.
        given = row.get("ind")
        example_id = index if given is None else (f"{given}-{index}" if given in seen else given)
        seen.add(given)
        endings = [_cleaned(ending) for ending in row["endings"]]
        example = choice(example_id, _scene(row), endings, as_index(row["label"]))
        if example is not None:
            yield {**example, "activity": as_text(row.get("activity_label"))}


def _scene(row: Row) -> str:
    """Return the activity and the scene so far, as lm-eval puts them."""
    scene = row["ctx"]
    if row.get("ctx_a"):
        scene = f"{row['ctx_a']} {as_text(row.get('ctx_b')).capitalize()}"
    activity = as_text(row.get("activity_label"))
    return _cleaned(f"{activity}: {scene}" if activity else scene)


def _cleaned(text: str) -> str:
    """Take out what was left of WikiHow's headings."""
    return _BRACKETS.sub("", text.strip().replace(" [title]", ". ")).replace("  ", " ").strip()


HELLASWAG = _dataset(
    "hellaswag",
    Part(repository="Rowan/hellaswag", split="validation"),
    _hellaswag,
    follows="EleutherAI/lm-evaluation-harness, hellaswag",
    metric=_GENERATED,
    group="activity",
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
    follows="EleutherAI/lm-evaluation-harness, winogrande",
    metric=_GENERATED,
    default_config="winogrande_xl",
    description="Which of two names fills the blank of a sentence.",
    size=1267,
    licence="CC BY",
    citation="Sakaguchi et al. 2020, arXiv:1907.10641",
)

RECORDS = (MMLU, MMLU_PRO, ARC_CHALLENGE, GPQA, HELLASWAG, WINOGRANDE)
