"""Cards of datasets: what a config measures and how, line by line."""

from collections.abc import Mapping
from typing import Any

from cbench_server.datasets.prompts.prompt import Prompt
from cbench_server.datasets.protocol import AXES


def told(prompt: Prompt, *, has_question: bool) -> dict[str, str]:
    """Say what models are told besides an example, unless a run says otherwise."""
    ends = [f"at {stop!r}" for stop in prompt.stop]
    ends += [f"after {prompt.max_tokens:,} tokens"] if prompt.max_tokens else []
    shots = f"{prompt.few_shot} examples of {prompt.few_shot_source or 'the same split'}"
    return {
        "Told": " ".join(prompt.told.split()),
        "Template": repr(prompt.template)[1:-1],
        "Few-shot": shots if prompt.few_shot else "none",
        "Responses": f"end {' or '.join(ends)}" if ends else "end where the model ends them",
        "Compressed": prompt.compressible + ("" if has_question else " (no question beside it)"),
    }


def facts(protocol: Mapping[str, Any], prompt: Prompt) -> dict[str, str]:
    """Give a protocol, as it describes itself, and a prompt as the lines of a card."""
    shown = protocol["shown"]
    return {
        **told(prompt, has_question=not shown or "question" in shown),
        "Source": _source(protocol),
        "Follows": protocol["follows"],
        "Shown": ", ".join(shown),
        "Withheld": ", ".join(protocol["withheld"]),
        "Answer": protocol["extraction"],
        "Thinking": "Left out before a response is scored; official scripts know of none.",
        "Evaluators": ", ".join(map(evaluator, protocol["evaluators"])),
        "Score": protocol["primary_score"] or "none can be computed here",
        "At worst": "not known" if protocol.get("worst") is None else f"{protocol['worst']:g}",
        "Groups": ", ".join(protocol["groups"]) or "none",
        "Figure": protocol["aggregate"],
        **(compared(protocol) if protocol["follows"] else {}),
    }


def _source(protocol: Mapping[str, Any]) -> str:
    """Say where rows come from; what the hub has is its newest unless a revision is pinned."""
    split = f", split {protocol['split']}" if protocol["split"] else ""
    if not split:
        return str(protocol["source"])
    return f"{protocol['source']}, {protocol['revision'] or 'newest revision'}{split}"


def compared(protocol: Mapping[str, Any]) -> dict[str, str]:
    """Give the four axes, each with its sentence."""
    found = {}
    for name in AXES:
        axis = protocol["axes"][name]
        found[name.capitalize()] = f"{axis['status']}. {axis['why']}".rstrip(". ") + "."
    return found


def evaluator(ref: Mapping[str, Any]) -> str:
    """Name an evaluator with its settings."""
    options = [f"{key}={value}" for key, value in sorted(ref["options"].items())]
    return f"{ref['name']} ({', '.join(options)})" if options else str(ref["name"])
