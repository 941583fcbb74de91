"""Question answering: an answer in a few words, from pages of Wikipedia or without any text."""

import itertools
from collections.abc import Iterator
from functools import partial

from cbench_server.datasets.catalog.fields import as_text, records, references
from cbench_server.datasets.catalog.scrolls import VALIDATION, scrolls_part, split_query
from cbench_server.datasets.hub.sources import Access, Part, Row, by_config, each, each_of_config
from cbench_server.datasets.protocol import EVIDENCE, DatasetProtocol, differs, use, uses
from cbench_server.datasets.record import hub_dataset
from cbench_server.types import Example

_dataset = partial(hub_dataset, family="question-answering")


def _hotpotqa(row: Row, index: int) -> Example:
    paragraphs = {p["title"]: p["sentences"] for p in records(row["context"])}
    facts = records(row.get("supporting_facts"))
    return {
        "id": row["id"],
        "context": "\n".join(f"{title}: {''.join(said)}" for title, said in paragraphs.items()),
        "question": row["question"],
        "answer": row["answer"],
        "type": row.get("type") or "",
        "level": row.get("level") or "",
        "evidence": [
            paragraphs[fact["title"]][fact["sent_id"]].strip()
            for fact in facts
            if fact["sent_id"] < len(paragraphs.get(fact["title"], ()))
        ],
    }


_HOTPOTQA = DatasetProtocol(
    follows="hotpotqa/hotpot, hotpot_evaluate_v1.py",
    shown=("context", "question", "type", "level"),
    withheld=("answer", "evidence"),
    evaluators=use("hotpotqa") + EVIDENCE,
    primary_score="hotpotqa_f1",
    groups=("type", "level"),
)


HOTPOTQA = _dataset(
    "hotpotqa",
    {
        name: (
            Part(
                repository="hotpotqa/hotpot_qa", config=name, split="validation", fallback="train"
            ),
        )
        for name in ("distractor", "fullwiki")
    },
    each(_hotpotqa),
    default_config="distractor",
    protocol=_HOTPOTQA,
    description="Questions that need two Wikipedia paragraphs, among distractors.",
    size=7405,
    licence="CC BY-SA 4.0",
    citation="Yang et al. 2018, arXiv:1809.09600",
)


def _musique(row: Row, index: int) -> Example:
    paragraphs = records(row["paragraphs"])
    example_id = index if row.get("id") is None else row["id"]
    return {
        "id": example_id,
        "context": "\n".join(f"{p['title']}: {p['paragraph_text']}" for p in paragraphs),
        "question": row["question"],
        **references([row["answer"], *(row.get("answer_aliases") or [])]),
        "hop": str(example_id).partition("hop")[0] if "hop" in str(example_id) else "",
        "evidence": [p["paragraph_text"] for p in paragraphs if p.get("is_supporting")],
    }


MUSIQUE = _dataset(
    "musique",
    Part(
        repository="bdsaglam/musique",
        config="answerable",
        split="validation",
        fallback="train",
    ),
    each(_musique),
    default_config="answerable",
    protocol=DatasetProtocol(
        follows="StonyBrookNLP/musique, evaluate_v1.0.py",
        shown=("context", "question", "hop"),
        withheld=("answer", "answers", "evidence"),
        evaluators=use("musique") + EVIDENCE,
        primary_score="musique_f1",
        groups=("hop",),
    ),
    description="Questions composed of two to four steps over twenty paragraphs.",
    size=2417,
    licence="CC BY 4.0",
    citation="Trivedi et al. 2022, arXiv:2108.00573",
)


def _natural_questions(row: Row, index: int) -> Example:
    return {"id": index, "context": row["question"], **references(row["answer"])}


NATURAL_QUESTIONS = _dataset(
    "natural-questions",
    Part(
        repository="google-research-datasets/nq_open",
        config="nq_open",
        split="validation",
    ),
    each(_natural_questions),
    default_config="nq_open",
    protocol=DatasetProtocol(
        follows="google-research/language, orqa/evaluation/evaluate_predictions.py (NQ-open)",
        shown=("context",),
        withheld=("answer", "answers"),
        evaluators=use("nq-open"),
        primary_score="nq_open_em",
    ),
    description="What people asked a search engine; no text is given, so nothing to compress.",
    size=3610,
    licence="CC BY-SA 3.0",
    citation="Kwiatkowski et al. 2019; Lee et al. 2019, arXiv:1906.00300",
)


def _narrativeqa(rows: Iterator[Row], access: Access) -> Iterator[Example]:
    if access.config == "story":
        # A question has a row for each of its references, which follow each other.
        for _, group in itertools.groupby(rows, key=lambda row: row["id"]):
            yield _scrolls_story([*group])
        return
    for index, row in enumerate(rows):
        yield _plot_question(row, index)


def _plot_question(row: Row, index: int) -> Example:
    return {
        "id": index,
        "context": row["document"]["summary"]["text"],
        "question": row["question"]["text"],
        **references(answer["text"] for answer in records(row["answers"])),
    }


def _scrolls_story(rows: list[Row]) -> Example:
    question, story = split_query(rows[0]["input"])
    answers = references(row["output"] for row in rows)
    return {"id": rows[0]["id"], "context": story, "question": question, **answers}


def _narrativeqa_protocol(config: str) -> DatasetProtocol:
    if config == "story":
        return DatasetProtocol(
            follows="tau-nlp/scrolls, metrics/f1.py",
            withheld=("answer", "answers"),
            data=VALIDATION,
        )
    return DatasetProtocol(
        follows="stanford-crfm/helm, narrative_qa (f1_score, plot summaries)",
        withheld=("answer", "answers"),
        evaluators=uses("answer-quality", "helm-f1", "rouge"),
        primary_score="helm_f1",
        data=differs(
            "All questions of test; HELM draws one for each story, and of validation too."
        ),
    )


NARRATIVEQA = _dataset(
    "narrativeqa",
    {
        "": (Part(repository="deepmind/narrativeqa"),),
        "story": (scrolls_part("narrative_qa"),),
    },
    _narrativeqa,
    protocol=_narrativeqa_protocol,
    description="Questions on books and films, from a plot summary; `story` has the whole text.",
    size=10557,
    licence="Apache-2.0",
    citation="Kočiský et al. 2018, arXiv:1712.07040",
)


def _triviaqa(row: Row, index: int, config: str) -> Example:
    pages = [*_pages(row, "entity_pages", "wiki_context")]
    found = [*_pages(row, "search_results", "search_context")]
    answer = row["answer"]
    accepted = [answer["value"], *(answer.get("aliases") or [])]
    # The official references; nearly all are the others in small letters.
    known = {each.casefold() for each in accepted}
    accepted += [n for n in answer.get("normalized_aliases") or [] if n not in known]
    return {
        "id": _triviaqa_id(row, index, config, is_web=bool(found) and not pages),
        "context": "\n\n".join([*pages, *found]) or row["question"],
        "question": row["question"],
        **references(accepted),
    }


def _triviaqa_id(row: Row, index: int, config: str, *, is_web: bool) -> str:
    """Name a row: two configs have a question once with pages of Wikipedia, once of the web."""
    question_id = str(row["question_id"])
    if config not in ("rc", "rc.nocontext"):
        return question_id
    if config == "rc":
        return f"{question_id}-{'web' if is_web else 'wikipedia'}"
    return f"{question_id}-{index}"


def _pages(row: Row, table: str, column: str) -> Iterator[str]:
    for page in records(row.get(table)):
        if text := as_text(page.get(column)).strip():
            title = as_text(page.get("title")).strip()
            yield f"{title}\n{text}" if title else text


def _triviaqa_protocol(config: str) -> DatasetProtocol:
    protocol = partial(
        DatasetProtocol,
        follows="mandarjoshi90/triviaqa, evaluation/triviaqa_evaluation.py",
        withheld=("answer", "answers"),
        evaluators=use("triviaqa"),
    )
    if config == "rc.wikipedia":
        return protocol(primary_score="triviaqa_f1")
    if "nocontext" in config:
        return protocol(
            shown=("context",),
            primary_score="triviaqa_em",
            data=differs("A question is there once for each domain that has pages on it.")
            if config == "rc.nocontext"
            else DatasetProtocol().data,
        )
    return protocol(
        primary_score="triviaqa_f1",
        data=differs("A row has all pages of its question; the web set is scored page by page."),
    )


TRIVIAQA = _dataset(
    "triviaqa",
    by_config(
        "mandarjoshi/trivia_qa",
        (
            "rc",
            "rc.web",
            "rc.wikipedia",
            "rc.nocontext",
            "rc.web.nocontext",
            "rc.wikipedia.nocontext",
            "unfiltered",
            "unfiltered.nocontext",
        ),
        "validation",
    ),
    each_of_config(_triviaqa),
    default_config="rc.wikipedia",
    protocol=_triviaqa_protocol,
    description="Trivia with pages of Wikipedia or of a web search, or without any.",
    size=7993,
    licence="Apache-2.0",
    citation="Joshi et al. 2017, arXiv:1705.03551",
)


RECORDS = (HOTPOTQA, MUSIQUE, NATURAL_QUESTIONS, NARRATIVEQA, TRIVIAQA)
