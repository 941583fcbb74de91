"""Prompts of a run: each dataset's own, changed by what the spec says, with few-shot examples."""

import itertools
import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Protocol

from cbench_server.datasets.prompts.library import is_official, official_limit, prompt_for
from cbench_server.datasets.prompts.prompt import (
    STANDARD,
    Asking,
    Prompt,
    without_words,
)
from cbench_server.datasets.prompts.template import parse, split_forms
from cbench_server.datasets.protocol import OWN_WORDS, SAME, Axis, differs
from cbench_server.datasets.record import DatasetRecord
from cbench_server.errors import CbenchError, InvalidSpec, UnknownName, blaming
from cbench_server.limits import MAX_FEW_SHOT
from cbench_server.runs.digests import canonical_digest
from cbench_server.spec import DatasetRef, PromptRef, RunSpec
from cbench_server.types import Example

SAME_ROWS = "the first rows of the same split, never the example itself"
_POOL = 64
_LOOKED_AT = 20
_EXAMPLE = "{context}\n{question}\nAnswer: {answer}"


class Prompted(Protocol):
    """A dataset that models are asked about."""

    @property
    def ref(self) -> DatasetRef:
        """What it was asked for by."""
        ...

    @property
    def record(self) -> DatasetRecord | None:
        """What is known of it; None for a file."""
        ...

    @property
    def data_dir(self) -> str:
        """Where mirrors are."""
        ...

    @property
    def worded_as(self) -> tuple[str, str]:
        """The dataset and config whose prompt it has; both empty for any."""
        ...

    def reference_fields(self, spec: RunSpec) -> frozenset[str]:
        """The fields kept from systems."""
        ...

    def unshuffled(self) -> Iterator[Example]:
        """Iterate the examples in the order of their source."""
        ...


def check_prompt(ref: PromptRef | None) -> None:
    """Refuse a prompt whose values cannot be meant."""
    if ref is None:
        return
    if ref.plain and ref.template:
        raise InvalidSpec(
            "a prompt is either plain or a template; leave one of them out.", field="plain"
        )
    if not 0 <= ref.few_shot <= MAX_FEW_SHOT:
        raise InvalidSpec(
            f"few_shot must be from 0 to {MAX_FEW_SHOT}, not {ref.few_shot}.", field="few_shot"
        )
    if ref.max_tokens is not None and ref.max_tokens < 1:
        raise InvalidSpec(
            f"max_tokens of the prompt must be at least 1, not {ref.max_tokens}.",
            field="max_tokens",
        )
    if not ref.template:
        if ref.plain and ref.few_shot:
            raise InvalidSpec(
                "a plain prompt has no few-shot examples; leave few_shot out.", field="few_shot"
            )
        return
    body, form = split_forms(ref.template)
    fields = parse(body).fields
    parse(form)
    if ref.few_shot and "examples" not in fields:
        raise InvalidSpec(
            f"the prompt template has no place for {ref.few_shot} few-shot examples; write "
            "{examples} where they are to stand.",
            field="template",
        )
    if not fields - {"instruction", "answer_format", "examples"}:
        raise InvalidSpec(
            "the prompt template names no field of an example, so all requests would be the "
            "same; write {context} or {question} where they are to stand.",
            field="template",
        )


def resolve_prompts(spec: RunSpec, datasets: Iterable[Prompted]) -> dict[str, Asking]:
    """Return what models are told, by dataset; reads few-shot examples where they are wanted."""
    with blaming("spec.prompt"):
        check_prompt(spec.prompt)
        return {dataset.ref.label: _asking(spec, dataset) for dataset in datasets}


def _asking(spec: RunSpec, dataset: Prompted) -> Asking:
    name, config = dataset.worded_as
    prompt = _chosen(prompt_for(name, config), spec.prompt)
    if prompt.origin == "file":
        _check_fields(prompt, spec, dataset)
    prompt = _compared(prompt, name, config, spec.prompt)
    if not prompt.few_shot:
        return Asking(prompt)
    if spec.kind == "memory":
        raise InvalidSpec(
            "few-shot examples mean nothing in a memory run; leave out few_shot.", field="few_shot"
        )
    rows, source = _pool(dataset, prompt.few_shot_source)
    if "answer" in parse(prompt.example).fields:
        # Without its answer, one would read as a further task.
        rows = [row for row in rows if row.get("answer") not in (None, "")]
    # One more than wanted, should the example itself be among them.
    if len(rows) <= prompt.few_shot:
        raise InvalidSpec(
            f'dataset "{dataset.ref.label}" has {len(rows)} examples with an answer to draw from, '
            f"too few for {prompt.few_shot} few-shot examples.",
            field="few_shot",
        )
    draw = random.Random(f"{spec.seed} {dataset.ref.label}")
    shots = tuple(draw.sample(rows, prompt.few_shot + 1))
    drawn = canonical_digest({"shots": list(shots)})
    return Asking(replace(prompt, few_shot_source=source, few_shot_digest=drawn), shots)


def _chosen(own: Prompt, ref: PromptRef | None) -> Prompt:
    if ref is None:
        return own
    prompt = own
    if ref.plain:
        prompt = without_words(own)
    elif ref.template:
        body, form = split_forms(ref.template)
        prompt = replace(own, template=body, example=form or _EXAMPLE, origin="file")
    return replace(
        prompt,
        system_prompt=ref.system_prompt,
        few_shot=ref.few_shot,
        max_tokens=ref.max_tokens or own.max_tokens,
    )


def _compared(prompt: Prompt, name: str, config: str, ref: PromptRef | None) -> Prompt:
    """Say whether a prompt is the benchmark's own, whose limit goes with it unless one is given."""
    is_whole = not prompt.system_prompt and not prompt.few_shot
    if not is_whole or not is_official(name, config, prompt.template):
        return replace(prompt, status="differs")
    limit = official_limit(name, config)
    if limit is None:
        return replace(prompt, status="same")
    given = None if ref is None else ref.max_tokens
    return replace(
        prompt,
        status="same" if given in (None, limit) else "differs",
        max_tokens=given or limit,
        published_max_tokens=limit,
    )


_WHY = {
    "own": OWN_WORDS,
    "plain": differs("Models are told nothing but the example's own texts."),
    "file": differs("Models are told what a template of the user's says."),
}


def axis_of(prompt: Prompt) -> Axis:
    """Compare a prompt with the benchmark's own."""
    if prompt.status == "same":
        return SAME
    if (published := prompt.published_max_tokens) is not None:
        return differs(
            f"It is the benchmark's, but answers may have {prompt.max_tokens:,} tokens, there "
            f"{published:,}."
        )
    return _WHY[prompt.origin].with_difference(
        "A system prompt was added." if prompt.system_prompt else "",
        f"{prompt.few_shot} few-shot examples were drawn from {prompt.few_shot_source}."
        if prompt.few_shot
        else "",
    )


def _check_fields(prompt: Prompt, spec: RunSpec, dataset: Prompted) -> None:
    """Refuse a template that names what is withheld, or what examples do not have."""
    named = parse(prompt.template).fields
    hidden = dataset.reference_fields(spec)
    if told := sorted(name for name in named if name in hidden):
        raise InvalidSpec(
            f'the prompt template names "{told[0]}", which is withheld from systems of '
            f'dataset "{dataset.ref.label}". It may stand in the form of a few-shot example, '
            "after a line [[example]].",
            field="template",
        )
    others = named - STANDARD
    if not others:
        return
    known = STANDARD.union(*itertools.islice(dataset.unshuffled(), _LOOKED_AT))
    for field in sorted(others - known):
        allowed = sorted(name for name in known if name not in hidden)
        raise InvalidSpec(
            f"the prompt template: {UnknownName('field', field, allowed)}",
            field="template",
        )


def _pool(dataset: Prompted, split: str) -> tuple[list[Example], str]:
    """Read rows to draw from: of another split where it can be read, else the dataset's first."""
    record, ref = dataset.record, dataset.ref
    is_other = split and record is not None and split != (ref.split or record.split)
    if is_other and record is not None and record.hub is not None:
        try:
            found = record.examples(ref.config, split=split, data_dir=dataset.data_dir)
            return list(itertools.islice(found, _POOL)), f"split {split}"
        except CbenchError:
            pass  # It is neither mirrored nor on the hub: the same split has to serve.
    return list(itertools.islice(dataset.unshuffled(), _POOL)), SAME_ROWS
