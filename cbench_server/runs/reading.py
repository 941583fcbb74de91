"""Readings: what a reader is asked about a system's output, prompt and question included."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cbench_server.datasets.prompts.prompt import Message, Prompt
from cbench_server.runs.plan import Plan
from cbench_server.types import Example


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reader is asked about one output."""

    prompt: Prompt
    messages: list[Message]
    tokens: int
    """Of the messages, by the run's tokenizer."""


def reading(plan: Plan, dataset: str, example: Example, processed: Mapping[str, Any]) -> Reading:
    """Make what a reader is asked; takes as long as its text is long."""
    withheld = plan.datasets[dataset].reference_fields
    visible = {name: value for name, value in example.items() if name not in withheld}
    asking = plan.asking(dataset)
    messages = asking.messages(visible, processed)
    tokens = sum(plan.tokenizer(message["content"]) for message in messages)
    return Reading(asking.prompt, messages, tokens)
