"""Notes on prompts: what the models of a run were told."""

from collections.abc import Mapping
from typing import Any

from cbench_server.spec import Run

_ORIGINS = {
    "own": "in our own words",
    "plain": "nothing but the examples' own texts",
    "file": "by the template that was given",
}
_DIGITS = 8


def prompt_notes(run: Run) -> list[str]:
    """Say what models were told, where a reader or a proxy was asked."""
    recorded: Mapping[str, Any] = run.config.get("prompts") or {}
    if "prompt" not in recorded.get("told", {}).values():
        return []
    said: dict[str, list[str]] = {}
    for label, prompt in recorded.get("datasets", {}).items():
        said.setdefault(_described(prompt), []).append(label)
    return [f"Prompt: {what} ({', '.join(labels)})." for what, labels in said.items()]


def _described(prompt: Mapping[str, Any]) -> str:
    parts = ["the same as the benchmark's"]
    if prompt["status"] != "same":
        parts = [_ORIGINS[prompt["origin"]]]
    if prompt["system_prompt"]:
        parts.append("with a system prompt")
    if prompt["few_shot"]:
        parts.append(f"{prompt['few_shot']} few-shot examples from {prompt['few_shot_source']}")
    if prompt["max_tokens"]:
        parts.append(f"at most {prompt['max_tokens']:,} tokens of answer")
    return f"{', '.join(parts)}, digest {prompt['digest'][:_DIGITS]}"
