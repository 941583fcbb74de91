"""Fields that the mappings of several datasets share: references, choices, tables of columns."""

from collections.abc import Iterable, Sequence
from typing import Any

from cbench_server.types import Example

LETTERS = "ABCDEFGHIJ"


def references(values: Iterable[Any]) -> Example:
    """Give `answer` and `answers`: each distinct text that is not empty, in order."""
    texts = [*dict.fromkeys(text for value in values if (text := as_text(value).strip()))]
    return {"answer": texts[0] if texts else "", "answers": texts}


def as_text(value: Any) -> str:
    """Return a value as text, and nothing for null."""
    return "" if value is None else str(value)


def render_choices(choices: Sequence[str]) -> str:
    """Put choices on one line: `A) first  B) second`."""
    return "  ".join(f"{letter}) {text}" for letter, text in zip(LETTERS, choices, strict=False))


def choice(question: str, choices: Sequence[Any], right: int) -> Example | None:
    """Give the fields of a multiple-choice example, or None if no choice is the right one."""
    texts = [str(text) for text in choices][: len(LETTERS)]
    if not 0 <= right < len(texts):
        return None
    return {
        "context": f"{question}\n\n{render_choices(texts)}",
        "question": question,
        "answer": texts[right],
        "choices": texts,
        "correct_letter": LETTERS[right],
    }


def choice_on(context: str, question: str, choices: Sequence[Any], right: int) -> Example | None:
    """Likewise, about a text: the choices stand with the question, out of a compressor's reach."""
    fields = choice(question, choices, right)
    return fields and {**fields, "context": context, "question": fields["context"]}


def records(table: Any) -> list[dict[str, Any]]:
    """Return a list of objects, which some sources keep as an object of lists."""
    if not isinstance(table, dict):
        return list(table or [])
    columns = [column or [] for column in table.values()]
    return [dict(zip(table, values, strict=False)) for values in zip(*columns, strict=False)]


def as_index(value: Any) -> int:
    """Return a whole number that may come as text; -1 where a split keeps it to itself."""
    return -1 if value is None or value == "" else int(value)
