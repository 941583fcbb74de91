"""A prompt: what a model is told besides an example, and how both become messages."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Literal

from cbench_server.datasets.catalog.fields import LETTERS
from cbench_server.datasets.once import once
from cbench_server.datasets.prompts.template import parse
from cbench_server.types import Example

Message = dict[str, Any]
Status = Literal["same", "differs"]

PLAIN = "{context}\n\n(Asked at {asked_at})\n{question}"
"""The example's own texts, and when a question is asked: without it "last week" means nothing."""
STANDARD = frozenset(
    {"instruction", "answer_format", "examples", "context", "question", "choices", "asked_at"}
)
"""Fields that any template may name; what an example lacks of them is empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """The prompt of one config of a dataset, as a run uses it."""

    template: str
    instruction: str = ""
    """States the task and its labels."""
    answer_format: str = ""
    """States what an answer looks like, so that it can be scored."""
    example: str = ""
    """The form of one few-shot example."""
    system_prompt: str = ""
    few_shot: int = 0
    few_shot_source: str = ""
    """Where few-shot examples come from: a split, or the dataset's own rows where empty."""
    few_shot_digest: str = ""
    """Of the examples that were drawn."""
    max_tokens: int | None = None
    """The most tokens of an answer."""
    stop: tuple[str, ...] = ()
    compressible: str = "context"
    """The field that a system may change; no other copy of its text is sent."""
    status: Status = "differs"
    """Whether it is the benchmark's own."""
    published_max_tokens: int | None = None
    """The most tokens of an answer to it as published; None where it is not the benchmark's own."""
    origin: Literal["own", "plain", "file"] = "own"

    @property
    def told(self) -> str:
        """What an answering system is told: the task and the form of an answer."""
        return "\n".join(part for part in (self.instruction, self.answer_format) if part)

    @property
    def digest(self) -> str:
        """Name all that it makes of an example, and all it asks of a model."""
        plain = {
            "template": self.template,
            "instruction": self.instruction,
            "answer_format": self.answer_format,
            "example": self.example if self.few_shot else "",
            "system_prompt": self.system_prompt,
            "few_shot": self.few_shot,
            "few_shot_source": self.few_shot_source if self.few_shot else "",
            "max_tokens": self.max_tokens,
            "stop": list(self.stop),
            "compressible": self.compressible,
        }
        if self.few_shot:
            plain["few_shot_digest"] = self.few_shot_digest
        return sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()

    def describe(self) -> dict[str, Any]:
        """Record it for a run's config."""
        return {
            "digest": self.digest,
            "status": self.status,
            "origin": self.origin,
            "template": self.template,
            "instruction": self.instruction,
            "answer_format": self.answer_format,
            "system_prompt": self.system_prompt,
            "few_shot": self.few_shot,
            "few_shot_source": self.few_shot_source,
            "max_tokens": self.max_tokens,
            "stop": list(self.stop),
        }


@dataclass(frozen=True, slots=True)
class Asking:
    """A prompt with its few-shot examples at hand: makes the messages of a model's request."""

    prompt: Prompt
    shots: tuple[Example, ...] = ()
    """More than are wanted, so that the example itself can be left out."""

    def messages(
        self, original: Example, processed: Mapping[str, Any] | None = None
    ) -> list[Message]:
        """Make the messages for an example, of which a system may have changed the context.

        `original` is as a system may see it. All but the changed field is the
        original's, so that every system is read with the same question.
        """
        prompt = self.prompt
        opening = _opening(prompt.system_prompt)
        if isinstance(original.get("turns"), list) and processed is None:
            told = _opening(prompt.told) if not prompt.system_prompt else []
            return [*opening, *told, *turn_messages(original)]
        values = _values(prompt, original, processed or original)
        values |= {"instruction": prompt.instruction, "answer_format": prompt.answer_format}
        values["examples"] = self._shown(original)
        text = parse(prompt.template).render(values)
        return [*opening, {"role": "user", "content": text}]

    def _shown(self, original: Example) -> str:
        if not self.prompt.few_shot:
            return ""
        form = parse(self.prompt.example)
        asked = ("context", "question")
        own = [once(original).get(name) for name in asked]
        others = [shot for shot in self.shots if [once(shot).get(name) for name in asked] != own]
        return "\n\n".join(
            form.render({**_values(self.prompt, shot, shot), "answer": _text(shot.get("answer"))})
            for shot in others[: self.prompt.few_shot]
        )


def _values(prompt: Prompt, original: Example, processed: Mapping[str, Any]) -> dict[str, str]:
    """Give an example's fields as text; copies of the changed field are not sent beside it."""
    changed = prompt.compressible
    values = {name: _text(value, name) for name, value in original.items()}
    whole, now = values.get(changed, ""), _text(processed.get(changed))
    values[changed] = now
    if not whole.strip():
        return values
    fields = parse(prompt.template).fields
    instead = "" if changed in fields else now
    for name, value in values.items():
        if name != changed and value:
            values[name] = _without_copy(name, value, whole.strip(), instead)
    # A template may name the question only, where that is the changed text.
    values["question"] = values.get("question") or instead
    if _holds_choices(whole, original.get("choices")):
        values["choices"] = "" if fields & {changed, "question"} else now
    return values


def _holds_choices(whole: str, choices: Any) -> bool:
    """Whether the choices are a part of the changed text."""
    if not isinstance(choices, list | tuple) or not choices:
        return False
    return all(f"{letter}) {text}" in whole for letter, text in zip(LETTERS, choices, strict=False))


def _without_copy(name: str, value: str, whole: str, instead: str) -> str:
    """Put something in the place of the changed field's text, where another field repeats it.

    A question that the changed text begins or ends with is a part of it.
    """
    text = value.strip()
    is_part = name == "question" and text and (whole.startswith(text) or whole.endswith(text))
    if is_part or text == whole:
        return instead
    if text.startswith(whole) or text.endswith(whole) or (len(whole) >= _LONG and whole in text):
        return text.replace(whole, instead).strip()
    return value


# A shorter text may stand in another by chance.
_LONG = 40


def turn_messages(example: Example) -> list[Message]:
    """Make messages of an example's turns, and of its question where no turn asks it.

    Who spoke, and when, is part of the text: endpoints refuse keys they do not know.
    """
    messages = [turn_message(turn) for turn in example["turns"]]
    question = _text(example.get("question"))
    asked = [_text(turn.get("content")) for turn in example["turns"]]
    if question.strip() and question not in asked:
        messages.append({"role": "user", "content": question})
    return messages


def turn_message(turn: Mapping[str, Any]) -> Message:
    """Make the message of one turn, with its time and speaker as text where it has them."""
    content = turn.get("content")
    said = [f"[{turn['time']}]"] if turn.get("time") else []
    if turn.get("speaker"):
        said.append(f"{turn['speaker']}:")
    if said:
        content = " ".join([*said, _text(content)])
    kept = {name: turn[name] for name in _KEPT if turn.get(name) is not None}
    return {"role": turn.get("role", "user"), "content": content, **kept}


# What the chat protocol knows of a message besides its role and content.
_KEPT = ("name", "tool_calls", "tool_call_id")


BARE = Asking(Prompt(template=PLAIN, origin="plain"))
"""Adds nothing to an example."""


def without_words(prompt: Prompt) -> Prompt:
    """Return what is left of a prompt when only the example's own texts are sent."""
    return replace(prompt, template=PLAIN, instruction="", answer_format="", origin="plain")


def _opening(text: str) -> list[Message]:
    return [{"role": "system", "content": text}] if text else []


def _text(value: Any, name: str = "") -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if name == "choices" and isinstance(value, Sequence):
        return "\n".join(f"{letter}) {text}" for letter, text in zip(LETTERS, value, strict=False))
    if isinstance(value, list | dict | tuple):
        return json.dumps(value, ensure_ascii=False, indent=1, default=str)
    return str(value)
