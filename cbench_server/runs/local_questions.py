"""Questions of a local evaluation of memories: one example for each, known by its conversation."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from cbench_server.datasets.conversations import questions
from cbench_server.runs.local_data import Source
from cbench_server.runs.store import SpooledExample
from cbench_server.types import Example


def questions_in(source: Source, question_types: Sequence[str], max_examples: int | None) -> Source:
    """Turn conversations into questions, under the tag that each conversation carries."""
    tags: list[str | None] = []

    def tagged() -> Iterator[Example]:
        for conversation in source.examples:
            tags.append(conversation.get("dataset"))
            yield conversation

    def asked() -> Iterator[Example]:
        found = questions(
            tagged(),
            label=source.label or "",
            question_types=question_types,
            max_conversations=max_examples,
        )
        for question in found:
            tag = tags[-1]
            yield question if tag is None else {**question, "dataset": tag}

    return replace(source, examples=asked())


def question_digests(examples: Sequence[SpooledExample]) -> dict[int, str]:
    """Name what the answer to each question depends on: itself and its conversation."""
    digests: dict[int, str] = {}
    head = ""
    for entry in examples:
        if "turns" in entry.example:
            head = entry.digest
        if head and entry.digest:
            digests[entry.ordinal] = f"{head}\n{entry.digest}"
    return digests
