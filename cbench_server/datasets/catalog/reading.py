"""Reading: questions about one text, with choices, spans, numbers or common misconceptions."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from cbench_server.datasets.catalog.fields import (
    as_text,
    choice,
    choice_on,
    drawn_order,
    records,
    references,
)
from cbench_server.datasets.hub.sources import Access, Part, Row, each, each_of_config
from cbench_server.datasets.protocol import EVIDENCE, DatasetProtocol, differs, use, uses
from cbench_server.datasets.record import hub_dataset
from cbench_server.types import Example

_dataset = partial(hub_dataset, family="question-answering")


def _quality(row: Row, index: int) -> Example | None:
    right = int(row["gold_label"] or 0) - 1
    given = row.get("question_unique_id")
    example_id = index if given is None else given
    example = choice_on(row["article"], example_id, row["question"], row["options"], right)
    return example and {**example, "difficult": _flag(row.get("difficult"))}


def _flag(value: object) -> str:
    """Say whether a question is of the hard subset; nothing where the copy does not tell."""
    return "" if value is None else ("yes" if str(value) in ("1", "True", "true") else "no")


QUALITY = _dataset(
    "quality",
    Part(repository="tasksource/QuALITY", split="validation"),
    each(_quality),
    protocol=DatasetProtocol(
        follows="nyu-mll/quality, accuracy; the letter as tau/zero_scrolls reads it",
        shown=("context", "question", "choices", "difficult"),
        withheld=("answer", "correct_letter"),
        extraction="The first letter of A to D that stands alone.",
        evaluators=use("multiple-choice", extraction="zero-scrolls"),
        primary_score="mc_accuracy",
        groups=("difficult",),
    ),
    description="Multiple choice about stories and articles of 2,000 to 8,000 tokens.",
    size=2086,
    licence="CC BY 4.0",
    citation="Pang et al. 2022, arXiv:2112.08608",
)


def _qasper(rows: Iterator[Row], access: Access) -> Iterator[Example]:
    for paper in rows:
        context = _paper_text(paper)
        for number, asked in enumerate(records(paper["qas"])):
            answers = [annotation["answer"] for annotation in records(asked["answers"])]
            given = [*map(_qasper_answer, answers)]
            kinds = [kind for kind, text in given if text]
            yield {
                "id": asked.get("question_id") or f"{paper['id']}_{number}",
                "context": context,
                "question": asked["question"],
                **references(text for _, text in given),
                "answer_type": kinds[0] if kinds else "",
                "evidence": [*dict.fromkeys(_qasper_evidence(answers))],
            }


def _paper_text(paper: Row) -> str:
    """Return title, abstract and sections, each heading before its own paragraphs."""
    texts = [paper["title"], paper["abstract"]]
    for section in records(paper["full_text"]):
        texts += [section["section_name"], *(section["paragraphs"] or [])]
    return "\n\n".join(text for text in map(as_text, texts) if text.strip())


def _qasper_answer(answer: Row) -> tuple[str, str]:
    """Return the kind and the text of an annotator's answer, as the official script has them."""
    if answer.get("unanswerable"):
        return "none", "Unanswerable"
    if spans := answer.get("extractive_spans"):
        return "extractive", ", ".join(spans)
    if text := answer.get("free_form_answer"):
        return "abstractive", str(text)
    if answer.get("yes_no") is None:
        return "", ""
    return "boolean", "Yes" if answer["yes_no"] else "No"


def _qasper_evidence(answers: list[Row]) -> Iterator[str]:
    for answer in answers:
        for text in answer.get("evidence") or []:
            # Figures and tables are not part of the text.
            if not str(text).startswith("FLOAT SELECTED"):
                yield str(text)


QASPER = _dataset(
    "qasper",
    Part(repository="allenai/qasper", split="validation", revision="refs/convert/parquet"),
    _qasper,
    protocol=DatasetProtocol(
        follows="allenai/qasper-led-baseline, scripts/evaluator.py (Answer F1)",
        withheld=("answer", "answers", "answer_type", "evidence"),
        evaluators=uses("answer-quality") + EVIDENCE,
        groups=("answer_type",),
        data=differs("The usual split is validation; papers report test (--split test)."),
    ),
    description="Questions about whole NLP papers, asked by readers of the abstract.",
    size=1005,
    licence="CC BY 4.0",
    citation="Dasigi et al. 2021, arXiv:2105.03011",
)


def _truthfulqa(row: Row, index: int, config: str) -> Example | None:
    question = row["question"]
    if config == "mc1":
        targets = row["mc1_targets"]
        options = drawn_order(str(question), targets["choices"])
        right = targets["choices"][targets["labels"].index(1)]
        return choice(index, question, options, options.index(right))
    correct = [row["best_answer"], *(row.get("correct_answers") or [])]
    return {
        "id": index,
        "context": question,
        **references(correct),
        "correct_answers": list(row.get("correct_answers") or [row["best_answer"]]),
        "incorrect_answers": list(row.get("incorrect_answers") or []),
        "category": row.get("category") or "",
    }


def _truthfulqa_protocol(config: str) -> DatasetProtocol:
    if config == "mc1":
        return DatasetProtocol(
            follows="sylinrl/TruthfulQA, MC1",
            shown=("context", "question", "choices"),
            withheld=("answer", "correct_letter"),
            extraction="The letter that the response settles on.",
            evaluators=uses("answer-quality", "multiple-choice"),
            primary_score="mc_accuracy",
            metric=differs("The chosen letter counts; MC1 compares log-likelihoods."),
        )
    return DatasetProtocol(
        follows="EleutherAI/lm-evaluation-harness, truthfulqa_gen",
        shown=("context", "category"),
        withheld=("answer", "answers", "correct_answers", "incorrect_answers"),
        evaluators=use("truthfulqa"),
        primary_score="truthfulqa_rouge_l_acc",
        groups=("category",),
    )


TRUTHFULQA = _dataset(
    "truthfulqa",
    {
        "generation": (
            Part(repository="truthfulqa/truthful_qa", config="generation", split="validation"),
        ),
        "mc1": (
            Part(repository="truthfulqa/truthful_qa", config="multiple_choice", split="validation"),
        ),
    },
    each_of_config(_truthfulqa),
    default_config="generation",
    protocol=_truthfulqa_protocol,
    description="Questions that people often answer wrongly, from misconceptions.",
    size=817,
    licence="Apache-2.0",
    citation="Lin et al. 2022, arXiv:2109.07958",
)


def _drop(row: Row, index: int) -> Example:
    if "answers_spans" in row:
        return {**_drop_asked(row), **references(row["answers_spans"]["spans"])}
    given = [row["answer"], *records(row.get("validated_answers"))]
    spans = [*dict.fromkeys(found for answer in given if (found := _drop_spans(answer)))]
    return {
        **_drop_asked(row),
        **references(" ".join(answer) for answer in spans),
        "answer_spans": [list(answer) for answer in spans],
    }


def _drop_asked(row: Row) -> Example:
    return {"id": row["query_id"], "context": row["passage"], "question": row["question"]}


def _drop_spans(answer: Row) -> tuple[str, ...]:
    """Return an annotator's answer as the official script reads it: a number, spans, or a date."""
    if number := as_text(answer.get("number")):
        return (number,)
    if spans := answer.get("spans"):
        return tuple(map(str, spans))
    date = answer.get("date") or {}
    written = " ".join(as_text(date.get(part)) for part in ("day", "month", "year")).strip()
    return (written,) if written else ()


_DROP = DatasetProtocol(
    follows="allenai/allennlp-reading-comprehension, drop_eval.py",
    withheld=("answer", "answers", "answer_spans"),
    evaluators=use("drop"),
    primary_score="drop_f1",
)


def _drop_protocol(config: str) -> DatasetProtocol:
    if not config:
        return _DROP
    flattened = "This copy has the spans of all annotators as alternatives, so F1 differs."
    return replace(_DROP, withheld=("answer", "answers"), metric=differs(flattened))


DROP = _dataset(
    "drop",
    {
        "": (Part(repository="EleutherAI/drop", split="validation"),),
        "ucinlp": (Part(repository="ucinlp/drop", split="validation"),),
    },
    each(_drop),
    protocol=_drop_protocol,
    description="Passages with questions that need counting, sorting or arithmetic.",
    size=9536,
    licence="CC BY-SA 4.0",
    citation="Dua et al. 2019, arXiv:1903.00161",
)

RECORDS = (QUALITY, QASPER, TRUTHFULQA, DROP)
