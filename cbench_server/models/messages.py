"""Messages of the chat protocol."""

from typing import Any

Message = dict[str, Any]


def opening(system_prompt: str | None) -> list[Message]:
    """Begin with the system prompt, if there is one."""
    return [{"role": "system", "content": system_prompt}] if system_prompt else []
