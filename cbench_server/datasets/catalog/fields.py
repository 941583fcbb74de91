"""Fields that the mappings of several datasets share: references, choices, tables of columns."""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from string import ascii_uppercase
from typing import Any

from cbench_server.types import Example

LETTERS = ascii_uppercase


def references(values: Iterable[Any]) -> Example:
    """Give `answer` and `answers`: each distinct text that is not empty, in order."""
    texts = [*dict.fromkeys(text for value in values if (text := as_text(value).strip()))]
    return {"answer": texts[0] if texts else "", "answers": texts}


def as_text(value: Any) -> str:
    """Return a value as text; null becomes the empty text."""
    return "" if value is None else str(value)


def render_choices(choices: Sequence[str]) -> str:
    """Put choices on one line: `A) first  B) second`."""
    return "  ".join(f"{letter}) {text}" for letter, text in zip(LETTERS, choices, strict=False))


def choice(
    example_id: str | int, question: str, choices: Sequence[Any], right: int
) -> Example | None:
    """Make a multiple-choice example, or return None if no choice is the right one."""
    texts = [str(text) for text in choices][: len(LETTERS)]
    if not 0 <= right < len(texts):
        return None
    return {
        "id": example_id,
        "context": f"{question}\n\n{render_choices(texts)}",
        "question": question,
        "answer": texts[right],
        "choices": texts,
        "correct_letter": LETTERS[right],
    }


def choice_on(
    context: str, example_id: str | int, question: str, choices: Sequence[Any], right: int
) -> Example | None:
    """Make such an example about a text: the choices are in the question, not in the context,
    so that a compressor cannot drop them.
    """
    example = choice(example_id, question, choices, right)
    if example is None:
        return None
    return {**example, "context": context, "question": example["context"]}


def records(table: Any) -> list[dict[str, Any]]:
    """Return a list of objects, which some sources keep as an object of lists."""
    if not isinstance(table, dict):
        return list(table or [])
    columns = [column or [] for column in table.values()]
    return [dict(zip(table, values, strict=False)) for values in zip(*columns, strict=False)]


def as_index(value: Any) -> int:
    """Return a whole number that may be given as text; -1 where a split does not publish it."""
    return -1 if value is None or value == "" else int(value)


def drawn_order(example_id: str, texts: Sequence[str]) -> list[str]:
    """Return choices in an order that is drawn, and the same on every load."""

    def key(text: str) -> bytes:
        return blake2b(f"{example_id}:{text}".encode(), digest_size=16).digest()

    return sorted(texts, key=key)
