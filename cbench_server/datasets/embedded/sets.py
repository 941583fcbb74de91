"""Datasets that come with the package and were written for it: they need no network."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from cbench_server.datasets.catalog.fields import LETTERS, choice, choice_on
from cbench_server.datasets.catalog.memory import transcript
from cbench_server.datasets.embedded.long_memory import CONVERSATIONS, conversations
from cbench_server.datasets.readers.files import iterate_file
from cbench_server.datasets.record import DEFAULT_REFERENCE_FIELDS, DatasetRecord
from cbench_server.types import Example

_FOLDER = Path(__file__).parent

Make = Callable[[Example], Example]


def _load(file_name: str, make: Make, config: str) -> Iterator[Example]:
    return map(make, iterate_file(_FOLDER / file_name))


def _embedded(name: str, make: Make, **about: Any) -> DatasetRecord:
    return DatasetRecord(
        name=name,
        load=partial(_load, f"{name}.jsonl", make),
        family="embedded",
        embedded=True,
        licence="MIT",
        **{"source": "written for cbench-server", **about},
    )


def _as_it_is(row: Example) -> Example:
    return row


MINI_QA = _embedded(
    "mini-qa",
    _as_it_is,
    description="Short passages, each with one question: names, numbers, dates, yes/no, lists.",
    evaluators=("answer-quality", "context-retention"),
    size=48,
)

LONG_NOTES = _embedded(
    "long-notes",
    _as_it_is,
    description="Long invented documents (logs, minutes, manuals) with one fact to find in each.",
    evaluators=("answer-quality", "context-retention"),
    size=40,
    source="written for cbench-server with datasets/embedded/long_notes/make.py",
)

MINI_SUMMARIES = _embedded(
    "mini-summaries",
    _as_it_is,
    description="News, minutes, dialogues, reports and letters, two summaries each.",
    evaluators=("answer-quality", "summarization-quality"),
    primary_score="rouge_l_f1",
    size=31,
)


def _choice(row: Example) -> Example:
    asked = row["id"], row["question"], row["choices"], LETTERS.index(row["answer"])
    example = choice_on(row["context"], *asked) if "context" in row else choice(*asked)
    return {"id": row["id"], "kind": row["kind"], **(example or {})}


MINI_CHOICE = _embedded(
    "mini-choice",
    _choice,
    description="Knowledge, language, sums and reading, with two to ten choices.",
    evaluators=("answer-quality", "multiple-choice"),
    primary_score="mc_accuracy",
    size=37,
)


def _asked(row: Example) -> Example:
    """Map a row that is only a question: its text is both context and question."""
    text = row.get("context") or row["question"]
    return {**row, "context": text, "question": text}


MINI_CODE = _embedded(
    "mini-code",
    _asked,
    description="Python functions to complete, or to write from a sentence, with their tests.",
    evaluators=("answer-quality", "code-execution"),
    primary_score="pass_at_1",
    size=34,
)

MINI_MATHS = _embedded(
    "mini-maths",
    _asked,
    description="Word problems, fractions, surds, expressions, sets, intervals and more.",
    evaluators=("answer-quality", "math-equivalence"),
    primary_score="math_equiv",
    size=42,
)

_ENTAILMENT = "Does the text entail, contradict, or not mention the following statement?"


def _nli(row: Example) -> Example:
    # A claim that a text SUPPORTS or REFUTES is asked alone, as in the datasets with these labels.
    is_claim = row["label"].isupper()
    return {
        "id": row["id"],
        "kind": row["kind"],
        "context": row["premise"],
        "question": row["hypothesis"] if is_claim else f"{_ENTAILMENT}\n\n{row['hypothesis']}",
        "answer": row["label"],
    }


MINI_NLI = _embedded(
    "mini-nli",
    _nli,
    description="Contracts, studies and scenes with statements that hold, do not, or are open.",
    evaluators=("answer-quality", "nli-label-match"),
    primary_score="nli_accuracy",
    size=36,
)

MINI_INSTRUCTIONS = _embedded(
    "mini-instructions",
    _asked,
    description="Requests with instructions on form: each of the 25 that IFEval checks.",
    reference_fields=(*DEFAULT_REFERENCE_FIELDS, "kwargs"),
    evaluators=("answer-quality", "ifeval"),
    primary_score="ifeval_prompt_strict",
    size=34,
)


def _chat(row: Example) -> Example:
    prompts = row["turns"]
    example = {**row, "context": prompts[0], "question": prompts[-1]}
    del example["turns"]
    if len(prompts) > 1:
        turns = [{"role": "user", "content": prompt} for prompt in prompts]
        example |= {"multi_turn": True, "turns": turns}
    return example


MINI_CHAT = _embedded(
    "mini-chat",
    _chat,
    description="Open requests of one or two turns, some with a reference; needs --judge-url.",
    primary_score="judge_score",
    # It would tell how an answer is judged.
    reference_fields=(*DEFAULT_REFERENCE_FIELDS, "category"),
    size=34,
)


def _conversation(row: Example) -> Example:
    return {**row, "context": transcript(row["turns"])}


MINI_MEMORY = _embedded(
    "mini-memory",
    _conversation,
    description="Conversations over months, and 54 questions on them, some without an answer.",
    reference_fields=(*DEFAULT_REFERENCE_FIELDS, "qa_pairs", "question_type", "is_abstention"),
    evaluators=("answer-quality", "abstention"),
    size=7,
)

LONG_MEMORY = DatasetRecord(
    name="long-memory",
    load=lambda config: map(_conversation, conversations(config)),
    family="embedded",
    embedded=True,
    licence="MIT",
    source="written for cbench-server by datasets/embedded/long_memory.py",
    description="Conversations of 500 turns: facts, changes, dates and what was never said.",
    reference_fields=MINI_MEMORY.reference_fields,
    evaluators=("answer-quality", "abstention"),
    size=CONVERSATIONS,
)

RECORDS = (
    MINI_QA,
    LONG_NOTES,
    MINI_SUMMARIES,
    MINI_CHOICE,
    MINI_CODE,
    MINI_MATHS,
    MINI_NLI,
    MINI_INSTRUCTIONS,
    MINI_CHAT,
    MINI_MEMORY,
    LONG_MEMORY,
)
