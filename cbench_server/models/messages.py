"""Messages that a chat model gets for an example."""

from typing import Any

from cbench_server.types import Example

Message = dict[str, Any]


def messages_for(example: Example, system_prompt: str | None = None) -> list[Message]:
    """Make the messages for an example: its turns, else context and question, else context."""
    messages = opening(system_prompt)
    if "turns" in example:
        return [*messages, *example["turns"]]
    context = _text(example.get("context"))
    question = example.get("question")
    if question is None:
        return [*messages, {"role": "user", "content": context}]
    return [
        *messages,
        {"role": "system", "content": context},
        {"role": "user", "content": _text(question)},
    ]


def opening(system_prompt: str | None) -> list[Message]:
    """Begin with the system prompt, if there is one."""
    return [{"role": "system", "content": system_prompt}] if system_prompt else []


def _text(value: object) -> str:
    return "" if value is None else str(value)
