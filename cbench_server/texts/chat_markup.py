"""Chat markup: the messages of a prompt in one text, each between marks that name its role."""

import re
from collections.abc import Iterable

_MESSAGE = re.compile(r"<\|im_start\|>(system|user|assistant)\n(.*?)\n?<\|im_end\|>", re.DOTALL)


def marked(messages: Iterable[tuple[str, str]]) -> str:
    """Put messages, each a role and a text, into one text."""
    return "\n".join(f"<|im_start|>{role}\n{text}\n<|im_end|>" for role, text in messages)


def messages_of(text: str) -> list[tuple[str, str]]:
    """Return the messages of a text; one without marks is a user's."""
    return [(found[1], found[2]) for found in _MESSAGE.finditer(text)] or [("user", text)]
