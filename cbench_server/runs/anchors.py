"""Anchors: what a reader makes of the whole context, twice, and of none.

Without them nobody knows how much of a difference between two systems is the
reader's own noise, nor how many questions it answers from what it knows. They
come after the systems, on some examples of the run, the same for each anchor.
"""

import random
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from cbench_server.datasets.prompts.prompt import Asking
from cbench_server.errors import InvalidSpec
from cbench_server.limits import text_size
from cbench_server.runs.arms import Arms
from cbench_server.runs.chosen import Chosen
from cbench_server.runs.connections import Connections
from cbench_server.runs.run_rows import RunRows
from cbench_server.runs.store import SpooledExample
from cbench_server.spec import Run, RunSpec, SystemRef
from cbench_server.types import Example

ANCHORED = 200
"""The most examples that anchors get."""
_MOST_TEXT = 8_000_000
"""Bytes of contexts that one anchor has read, about two million tokens: fewer examples then."""
_LEAST = 20
"""Examples that are read in any case."""
_WHOLE = {"process": "identity", "memory": "full-history"}
"""The built-in system that leaves the context whole, by kind of run."""
_WITHOUT = "no-context"


def check_anchors(spec: RunSpec) -> None:
    """Refuse anchors where no model could read them."""
    if spec.anchors and spec.reader is None:
        raise InvalidSpec(
            "anchors are read by the reader, and this run has none. Name one, or leave anchors "
            "out.",
            field="spec.anchors",
        )


def check_anchor_names(spec: RunSpec, systems: Iterable[str]) -> None:
    """Refuse a system that has the name of an anchor which the run may add."""
    if spec.reader is None or spec.anchors is False:
        return
    taken = {f"{arm}@reader" for arm in _arms(_WHOLE[spec.kind])}
    for name in systems:
        if name in taken:
            raise InvalidSpec(
                f'a system is named "{name}", as an anchor of this run is. Give it another name, '
                "or leave the anchors out.",
                field="spec.anchors",
            )


def _arms(whole: str) -> tuple[str, str, str]:
    return whole, f"{whole}-again", _WITHOUT


async def anchor_arms(store: RunRows, run: Run, opened: Connections) -> Arms | None:
    """Return the anchors of a run, None if nothing was read or none are wanted."""
    spec = run.spec
    if opened.reader is None or spec.anchors is False:
        return None
    anchors = run.config.get("anchors")
    if anchors is None:
        if not await _has_read(store, run):
            return None
        anchors = await _choose(store, run, opened)
    refs = [SystemRef(**ref, role="anchor") for ref in anchors["arms"]]
    examples = {
        ref.name: anchors["asked" if ref.builtin == _WITHOUT else "examples"] for ref in refs
    }
    callers = [
        caller for ref in refs for caller in await opened.finder.find_systems(ref, spec.kind)
    ]
    if not callers:
        return None
    names = list(examples)
    repeats = dict.fromkeys(names, 1)
    return Arms(
        callers,
        repeats,
        {
            "anchors": anchors,
            "roles": {**run.config.get("roles", {}), **dict.fromkeys(names, "anchor")},
            "repeats": {**run.config.get("repeats", {}), **repeats},
            "fixed_rows": {
                **run.config.get("fixed_rows", {}),
                **{name: len(chosen) for name, chosen in examples.items()},
            },
        },
        Chosen(store, run.run_id, examples, is_memory=spec.kind == "memory"),
        may_fail=True,
    )


async def _has_read(store: RunRows, run: Run) -> bool:
    """Whether the reader answered for any system, by the first rows of each."""
    for system in run.systems:
        async for page in store.iterate_rows(run.run_id, system):
            if any(row.was_read for row in page):
                return True
            break
    return False


async def _choose(store: RunRows, run: Run, opened: Connections) -> dict[str, Any]:
    """Choose the examples by the run's seed, and the arms that are still to be made."""
    count, _ = await store.spooled(run.run_id)
    order = random.Random(f"anchors {run.spec.seed}").sample(range(count), min(count, ANCHORED))
    sizes = await _conversation_sizes(store, run.run_id) if run.spec.kind == "memory" else {}
    examples: list[int] = []
    asked: list[int] = []
    text = 0
    for ordinal in order:
        (spooled,) = await store.read_examples(run.run_id, ordinal, 1)
        text += sizes.get(str(spooled.example.get("group")), text_size(spooled.example))
        if text > _MOST_TEXT and len(examples) >= _LEAST:
            break
        examples.append(ordinal)
        if _is_asked_without(spooled, opened):
            asked.append(ordinal)
    return {**_arms_of(run, asked), "examples": sorted(examples), "asked": sorted(asked)}


def _arms_of(run: Run, asked: list[int]) -> dict[str, Any]:
    """Say what is read first and what again; what a system of the run gives is not paid for again.

    A run that has the whole context among its systems is read once more, and one
    that has it with repeats has it twice already.
    """
    spec = run.spec
    whole, again, without = _arms(_WHOLE[spec.kind])
    own = next((ref.name or whole for ref in spec.systems if ref.builtin == whole), "")
    first = own or f"{whole}@reader"
    second = first if own and spec.repeats > 1 else f"{again}@reader"
    wanted = [(name, whole) for name in dict.fromkeys((first, second)) if name != own]
    if asked:
        wanted.append((f"{without}@reader", without))
    arms = [{"name": name, "builtin": builtin} for name, builtin in wanted]
    return {"whole": whole, "first": first, "again": second, "arms": arms}


async def _conversation_sizes(store: RunRows, run_id: str) -> dict[str, int]:
    """Return the bytes of each conversation, which only its first question has."""
    sizes: dict[str, int] = {}
    start = 0
    while page := await store.read_examples(run_id, start, 256):
        for spooled in page:
            if "turns" in spooled.example:
                turns = spooled.example["turns"]
                sizes[str(spooled.example["group"])] = sum(len(each["content"]) for each in turns)
        start = page[-1].ordinal + 1
    return sizes


def _is_asked_without(spooled: SpooledExample, opened: Connections) -> bool:
    """Whether anything of an example reaches the reader where its context is gone."""
    withheld = opened.plans[spooled.dataset].reference_fields
    visible = {name: text for name, text in spooled.example.items() if name not in withheld}
    # Few-shot examples are of no account here: they are others.
    asking = replace(opened.prompts[spooled.dataset], shots=())
    return _prompt(asking, visible) != _prompt(asking, dict.fromkeys(visible, ""))


def _prompt(asking: Asking, visible: Example) -> str:
    messages = asking.messages(visible, {**visible, "context": ""})
    return str(messages[-1]["content"])
