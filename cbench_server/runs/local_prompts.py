"""Prompts of a local evaluation: what was asked for, and what it makes of each dataset's own."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from cbench_server.contract import optional_method
from cbench_server.datasets.prompts.prompt import Asking
from cbench_server.datasets.record import DatasetRecord
from cbench_server.datasets.withheld import OF_ANY_FILE, Withheld
from cbench_server.errors import InvalidInput, InvalidSpec
from cbench_server.registry import registry
from cbench_server.runs.answers import Told
from cbench_server.runs.local_data import Source
from cbench_server.runs.local_systems import Given, is_asked_here
from cbench_server.runs.prompting import check_prompt, resolve_prompts
from cbench_server.runs.store import SpooledExample
from cbench_server.spec import DatasetRef, PromptRef, RunSpec
from cbench_server.systems.in_process import INSTRUCTION, takes
from cbench_server.types import Example

_PLAIN = "plain"


def prompt_ref(
    prompt: str | PathLike[str] | None, system_prompt: str, few_shot: int
) -> PromptRef | None:
    """Refer to what models are told; None where datasets have their own prompt and no more."""
    ref = PromptRef(
        template="" if prompt in (None, _PLAIN) else _template(prompt),
        system_prompt=system_prompt,
        few_shot=few_shot,
        plain=prompt == _PLAIN,
    )
    check_prompt(ref)
    return None if ref == PromptRef() else ref


def _template(prompt: Any) -> str:
    if isinstance(prompt, PathLike):
        try:
            text = Path(prompt).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"prompt: {error}") from error
        if not text.strip():
            raise InvalidInput(f"prompt: {Path(prompt)} is empty.")
        return text
    if not isinstance(prompt, str):
        raise InvalidInput(
            f'prompt is {prompt!r:.60} of type {type(prompt).__name__}; give "plain", a template, '
            "or Path(FILE)."
        )
    if "{" not in prompt:
        raise InvalidSpec(
            f'the prompt "{prompt[:60]}" is no template: it names no field, such as {{context}}. '
            'Give "plain", a template, or Path(FILE).'
        )
    return prompt


@dataclass(frozen=True)
class _Tagged:
    """The examples of one tag. See Prompted."""

    ref: DatasetRef
    source: Source
    given: Sequence[SpooledExample]
    is_memory: bool

    @property
    def record(self) -> DatasetRecord | None:
        return self.source.loaded.record if self.source.loaded else None

    @property
    def data_dir(self) -> str:
        loaded = self.source.loaded
        return (loaded.data_dir if loaded else "") or registry.data_dir

    @property
    def worded_as(self) -> tuple[str, str]:
        return self.source.loaded.worded_as if self.source.loaded else ("", "")

    def reference_fields(self, spec: RunSpec) -> frozenset[str]:
        # Whatever systems are shown, models are not told the answer.
        return Withheld(self.source.loaded.reference_fields if self.source.loaded else OF_ANY_FILE)

    def unshuffled(self) -> Iterator[Example]:
        # More of them than `max_examples` lets through, where there are more.
        if self.source.loaded is not None and not self.is_memory:
            return iter(self.source.loaded)
        return (entry.example for entry in self.given)


def prompts_of(
    spec: RunSpec,
    sources: Sequence[Source],
    examples: Sequence[SpooledExample],
) -> dict[str, Asking]:
    """Return what models, and systems that answer, are told, by tag."""
    by_label = {source.label: source for source in sources if source.loaded}
    tagged = []
    for ref in spec.datasets:
        given = [entry for entry in examples if entry.dataset == ref.label]
        source = by_label.get(ref.label) or Source(())
        tagged.append(_Tagged(ref, source, given, spec.kind == "memory"))
    return resolve_prompts(spec, tagged)


def told_of(given: Given, *, has_reader: bool) -> Told | None:
    """Return what of the prompts the rows of a system depend on."""
    if has_reader or is_asked_here(given.system):
        return "prompt"
    return "instruction" if _wants_instruction(given.system) else None


def _wants_instruction(system: Any) -> bool:
    names = ("process", "process_conversation", "query")
    methods = [optional_method(system, f"{twin}{name}") for twin in ("a", "") for name in names]
    return any(takes(method, INSTRUCTION) for method in methods)
