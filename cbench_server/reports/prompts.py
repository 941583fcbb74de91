"""Notes on prompts: what the models of a run were told."""

from collections.abc import Mapping
from typing import Any

from cbench_server.spec import ModelRef, Run

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
    models = _models(run)
    own = {name: ref for name, ref in models.items() if ref.own_limit}
    said: dict[str, list[str]] = {}
    for label, prompt in recorded.get("datasets", {}).items():
        is_limited = len(own) < len(models) or not models
        said.setdefault(_described(prompt, is_limited), []).append(label)
    return [
        *(f"Prompt: {what} ({', '.join(labels)})." for what, labels in said.items()),
        *(_own_limit(name, ref) for name, ref in own.items()),
    ]


def _models(run: Run) -> dict[str, ModelRef]:
    proxies = {ref.name or "the proxy": ref.proxy for ref in run.spec.systems if ref.proxy}
    return proxies if run.spec.reader is None else {"The reader": run.spec.reader, **proxies}


def _own_limit(name: str, ref: ModelRef) -> str:
    limit = ref.options[ref.own_limit]
    if limit is None:
        return f"{name} may answer at any length: its {ref.own_limit} is left out."
    return f"{name} answers with at most {limit} tokens, by its own {ref.own_limit}."


def _described(prompt: Mapping[str, Any], is_limited: bool) -> str:
    parts = ["the same as the benchmark's"]
    if prompt["status"] != "same":
        parts = [_ORIGINS[prompt["origin"]]]
    if prompt["system_prompt"]:
        parts.append("with a system prompt")
    if prompt["few_shot"]:
        parts.append(f"{prompt['few_shot']} few-shot examples from {prompt['few_shot_source']}")
    if prompt["max_tokens"] and is_limited:
        parts.append(f"at most {prompt['max_tokens']:,} tokens of answer")
    return f"{', '.join(parts)}, digest {prompt['digest'][:_DIGITS]}"
