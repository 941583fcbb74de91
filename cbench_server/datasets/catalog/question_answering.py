"""Question answering: a text, or only the question, and an answer in a few words."""

from collections.abc import Iterator
from functools import partial

from cbench_server.datasets.catalog.fields import as_text, choice_on, records, references
from cbench_server.datasets.hub.sources import Access, Part, Row, by_config, each
from cbench_server.datasets.record import hub_dataset
from cbench_server.types import Example

_dataset = partial(hub_dataset, family="question-answering")


def _hotpotqa(row: Row, index: int) -> Example:
    paragraphs = records(row["context"])
    return {
        "id": row["id"],
        "context": "\n".join(f"{p['title']}: {''.join(p['sentences'])}" for p in paragraphs),
        "question": row["question"],
        "answer": row["answer"],
        "type": row.get("type") or "",
    }


def _hotpotqa_part(config: str) -> tuple[Part, ...]:
    home = "hotpotqa/hotpot_qa"
    part = Part(
        repository=home, config=config, split="validation", also=(f"{home}/{config}/train",)
    )
    return (part,)


HOTPOTQA = _dataset(
    "hotpotqa",
    {name: _hotpotqa_part(name) for name in ("fullwiki", "distractor")},
    each(_hotpotqa),
    default_config="fullwiki",
    description="Questions that need two Wikipedia paragraphs, among distractors.",
    size=7405,
    licence="CC BY-SA 4.0",
    citation="Yang et al. 2018, arXiv:1809.09600",
)


def _musique(row: Row, index: int) -> Example:
    paragraphs = records(row["paragraphs"])
    return {
        "id": index if row.get("id") is None else row["id"],
        "context": "\n".join(f"{p['title']}: {p['paragraph_text']}" for p in paragraphs),
        "question": row["question"],
        **references([row["answer"], *(row.get("answer_aliases") or [])]),
    }


MUSIQUE = _dataset(
    "musique",
    Part(
        repository="bdsaglam/musique",
        config="answerable",
        split="validation",
        also=("bdsaglam/musique/answerable/train",),
    ),
    each(_musique),
    default_config="answerable",
    description="Questions composed of two to four steps over twenty paragraphs.",
    size=2417,
    licence="CC BY 4.0",
    citation="Trivedi et al. 2022, arXiv:2108.00573",
)


def _natural_questions(row: Row, index: int) -> Example:
    question = row["question"]
    return {"id": index, "context": question, "question": question, **references(row["answer"])}


NATURAL_QUESTIONS = _dataset(
    "natural-questions",
    Part(
        repository="google-research-datasets/nq_open",
        config="nq_open",
        split="validation",
    ),
    each(_natural_questions),
    default_config="nq_open",
    description="What people asked a search engine; no text is given, so nothing to compress.",
    primary_score="exact_match",
    size=3610,
    licence="CC BY-SA 3.0",
    citation="Kwiatkowski et al. 2019; Lee et al. 2019, arXiv:1906.00300",
)


def _narrativeqa(row: Row, index: int) -> Example:
    return {
        "id": index,
        "context": row["document"]["summary"]["text"],
        "question": row["question"]["text"],
        **references(answer["text"] for answer in records(row["answers"])),
    }


NARRATIVEQA = _dataset(
    "narrativeqa",
    Part(repository="deepmind/narrativeqa"),
    each(_narrativeqa),
    description="Questions about books and films, answered from a summary of the plot.",
    official=False,
    size=10557,
    licence="Apache-2.0",
    citation="Kočiský et al. 2018, arXiv:1712.07040",
)


def _triviaqa(row: Row, index: int) -> Example:
    found = (row.get("search_results") or {}).get("search_context") or []
    answer = row["answer"]
    return {
        "id": row["question_id"],
        "context": "\n".join(text for text in found if text) or row["question"],
        "question": row["question"],
        **references([answer["value"], *(answer.get("aliases") or [])]),
    }


TRIVIAQA = _dataset(
    "triviaqa",
    by_config(
        "mandarjoshi/trivia_qa",
        ("rc", "rc.web", "rc.wikipedia", "rc.nocontext", "unfiltered"),
        "validation",
    ),
    each(_triviaqa),
    default_config="rc",
    description="Trivia with the pages a web search found; the bare question where it found none.",
    licence="Apache-2.0",
    citation="Joshi et al. 2017, arXiv:1705.03551",
)


def _frames(row: Row, index: int) -> Example:
    prompt = row["Prompt"]
    return {"id": index, "context": prompt, "question": prompt, "answer": row["Answer"]}


FRAMES = _dataset(
    "frames",
    Part(repository="google/frames-benchmark"),
    each(_frames),
    description="Questions over several Wikipedia articles, which are not given.",
    official=False,
    size=824,
    licence="Apache-2.0",
    citation="Krishna et al. 2024, arXiv:2409.12941",
)


def _quality(row: Row, index: int) -> Example | None:
    right = int(row["gold_label"] or 0) - 1
    return choice_on(row["article"], index, row["question"], row["options"], right)


QUALITY = _dataset(
    "quality",
    Part(repository="tasksource/QuALITY", split="validation"),
    each(_quality),
    description="Multiple choice about stories and articles of 2,000 to 8,000 tokens.",
    evaluators=("answer-quality", "multiple-choice"),
    primary_score="mc_accuracy",
    size=2086,
    licence="CC BY 4.0",
    citation="Pang et al. 2022, arXiv:2112.08608",
)


def _qasper(rows: Iterator[Row], access: Access) -> Iterator[Example]:
    for paper in rows:
        context = _paper_text(paper)
        for number, asked in enumerate(records(paper["qas"])):
            yield {
                "id": f"{paper['id']}_{number}",
                "context": context,
                "question": asked["question"],
                **references(_qasper_answers(asked["answers"])),
            }


def _paper_text(paper: Row) -> str:
    """Return title, abstract and sections, each heading before its own paragraphs."""
    texts = [paper["title"], paper["abstract"]]
    for section in records(paper["full_text"]):
        texts += [section["section_name"], *(section["paragraphs"] or [])]
    return "\n\n".join(text for text in map(as_text, texts) if text.strip())


def _qasper_answers(annotations: object) -> Iterator[str]:
    for answer in (annotation["answer"] for annotation in records(annotations)):
        if text := answer.get("free_form_answer") or "":
            yield text
        elif spans := answer.get("extractive_spans"):
            yield spans[0]
        elif answer.get("yes_no") is not None:
            yield "Yes" if answer["yes_no"] else "No"
        elif answer.get("unanswerable"):
            yield "Unanswerable"


QASPER = _dataset(
    "qasper",
    Part(repository="allenai/qasper", split="validation", revision="refs/convert/parquet"),
    _qasper,
    description="Questions about whole NLP papers, asked by readers of the abstract.",
    official=False,
    size=1005,
    licence="CC BY 4.0",
    citation="Dasigi et al. 2021, arXiv:2105.03011",
)


def _truthfulqa(row: Row, index: int) -> Example:
    question = row["question"]
    answers = [row["best_answer"], *(row.get("correct_answers") or [])]
    return {"id": index, "context": question, "question": question, **references(answers)}


TRUTHFULQA = _dataset(
    "truthfulqa",
    Part(repository="truthfulqa/truthful_qa", config="generation", split="validation"),
    each(_truthfulqa),
    default_config="generation",
    description="Questions that people often answer wrongly, from misconceptions.",
    official=False,
    size=817,
    licence="Apache-2.0",
    citation="Lin et al. 2022, arXiv:2109.07958",
)


def _drop(row: Row, index: int) -> Example:
    return {
        "id": row["query_id"],
        "context": row["passage"],
        "question": row["question"],
        **references(row["answers_spans"]["spans"]),
    }


DROP = _dataset(
    "drop",
    Part(repository="ucinlp/drop", split="validation"),
    each(_drop),
    description="Passages with questions that need counting, sorting or arithmetic.",
    official=False,
    licence="CC BY-SA 4.0",
    citation="Dua et al. 2019, arXiv:1903.00161",
)

RECORDS = (
    HOTPOTQA,
    MUSIQUE,
    NATURAL_QUESTIONS,
    NARRATIVEQA,
    TRIVIAQA,
    FRAMES,
    QUALITY,
    QASPER,
    TRUTHFULQA,
    DROP,
)
