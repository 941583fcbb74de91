"""Matched controls: for each system that shortens contexts, cuts of the same length.

They come after the systems, because each example is cut to the number of tokens
that the system itself left of it, which its stored rows tell. Where it left
nothing to go by, because its row failed or has no context, the cut is to its
usual share.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cbench_server.comparison import Comparison, compare
from cbench_server.comparison.raters import as_proven, without_disputed
from cbench_server.errors import InvalidInput
from cbench_server.limits import LONG_TEXT
from cbench_server.metrics.outcomes import score_infos
from cbench_server.results import EvalRow
from cbench_server.runs.arms import Arms
from cbench_server.runs.concluded_rows import ConcludedRows
from cbench_server.runs.connections import Connections
from cbench_server.runs.rows import Item
from cbench_server.runs.run_rows import RunRows
from cbench_server.runs.under_test import built_in, under_test
from cbench_server.spec import Run, RunNote, RunSpec
from cbench_server.systems.caller import (
    CONTROL,
    Answer,
    Call,
    Process,
    SystemDescription,
    texts_carried,
)
from cbench_server.systems.in_process import Attempt, ObjectCaller
from cbench_server.systems.matched import CUTS, cut_to
from cbench_server.tokens import Tokenizer

SEEDS = 5
"""How often words are dropped at random, each time others."""
COMPARED = 50_000
"""The most rows of a run whose controls are compared when it ends."""
NO_CONTROLS = "NO_CONTROLS"
# Cut to as many tokens, it is what `lead` keeps.
_OWN_CUTS = {"lead": "truncate-tail"}


@dataclass(frozen=True, slots=True)
class Control:
    """One control: which system it is held to, and how it cuts."""

    leader: str
    cut: str

    @property
    def name(self) -> str:
        """What its rows carry."""
        return f"{self.cut}@{self.leader}"

    def repeats(self, spec: RunSpec) -> int:
        """How often each example is cut."""
        return spec.repeats * (SEEDS if self.cut == "random-drop" else 1)


def controls_of(run: Run) -> list[Control]:
    """Return the controls that a run has already."""
    return [Control(*each) for each in run.config.get("controls", ())]


async def control_arms(store: RunRows, run: Run, opened: Connections) -> Arms | None:
    """Return the controls of a run, None where none are wanted or nothing was shortened."""
    is_wanted = run.spec.matched_controls or "controls" in run.config
    if not is_wanted or run.spec.kind == "memory":
        return None
    controls = controls_of(run) or await wanted_controls(store, run)
    if not controls:
        return None
    tokenizer = opened.count_by(run.spec)
    repeats = {control.name: control.repeats(run.spec) for control in controls}
    return Arms(
        [ControlCaller(control, store, run, tokenizer) for control in controls],
        repeats,
        {
            "controls": [[control.leader, control.cut] for control in controls],
            "repeats": {**run.config.get("repeats", {}), **repeats},
        },
    )


async def wanted_controls(store: RunRows, run: Run) -> list[Control]:
    """Return controls for every system under test that left shorter contexts."""
    found = []
    for system in under_test(run):
        given, left = await _lengths_left(store, run.run_id, system)
        if left < given:
            own = own_cut(run, system)
            found += [Control(system, cut) for cut in CUTS if cut != own]
    return found


def own_cut(run: Run, system: str) -> str:
    """Name the control that a system of ours is itself; empty if it is none."""
    which = built_in(run).get(system, "")
    return _OWN_CUTS.get(which, which if which in CUTS else "")


async def _lengths_left(store: RunRows, run_id: str, system: str) -> tuple[int, int]:
    """Return the tokens of the contexts that a system told of: what it was given, and left."""
    given = left = 0
    async for page in store.iterate_rows(run_id, system):
        for row in page:
            if row.context_tokens_out is not None:
                given += row.context_tokens_in or 0
                left += row.context_tokens_out
    return given, left


class ControlCaller(ObjectCaller):
    """Calls one control."""

    def __init__(self, control: Control, store: RunRows, run: Run, tokenizer: Tokenizer) -> None:
        description = SystemDescription(
            name=control.name,
            version="1",
            description=f"Cuts to the length that {control.leader} left, by {control.cut}.",
            location=CONTROL,
        )
        super().__init__(description, workers=1)
        self._control = control
        self._lengths = _Lengths(store, run.run_id, control.leader)
        self._repeats = run.spec.repeats
        self._tokenizer = tokenizer

    def attempt(self, call: Call) -> Attempt:
        """See ObjectCaller."""

        async def run() -> Answer:
            assert isinstance(call, Item)
            example, work = call.spooled.example, call.work
            assert isinstance(work, Process)
            text = example.get("context")
            text = text if isinstance(text, str) else ""
            have = call.spooled.field_tokens.get("context", 0)
            seed, repeat = divmod(call.repeat, self._repeats)
            tokens = await self._lengths.of(call.spooled.ordinal, repeat, have)
            cut = self._control.cut
            settings = (text, tokens, cut, self._tokenizer, example["id"], seed)
            is_short = len(text) <= LONG_TEXT
            kept = cut_to(*settings) if is_short else await asyncio.to_thread(cut_to, *settings)
            processed: dict[str, Any] = {**work.visible, "context": kept}
            if work.is_summary:
                # As for a built-in truncation: what is left of the text is its summary.
                processed["response"] = kept
            return Answer(call, processed, 0.0, None, texts_carried(processed, example))

        return Attempt(run, is_async=True)


class _Lengths:
    """How many tokens a system left of each example, read from its rows as they are needed."""

    def __init__(self, store: RunRows, run_id: str, system: str) -> None:
        self._store = store
        self._run_id = run_id
        self._system = system
        self._pages: AsyncIterator[list[EvalRow]] = store.iterate_rows(run_id, system)
        self._known: dict[tuple[int, int], int | None] = {}
        self._last = -1
        self._share: float | None = None
        self._reading = asyncio.Lock()

    async def of(self, ordinal: int, repeat: int, have: int) -> int:
        """Return the length for an example whose whole context has `have` tokens."""
        async with self._reading:
            # Items come in the order of the run, so what lies behind is not asked for again.
            while self._last <= ordinal and (page := await anext(self._pages, None)):
                for row in page:
                    self._known[row.ordinal, row.repeat] = row.context_tokens_out
                    self._last = row.ordinal
                self._forget(ordinal)
            length = self._known.get((ordinal, repeat))
            if length is not None:
                return length
            if self._share is None:
                given, left = await _lengths_left(self._store, self._run_id, self._system)
                self._share = left / given if given else 1.0
            return round(have * self._share)

    def _forget(self, ordinal: int) -> None:
        # Calls in flight, repeats of them included, are within a thousand examples.
        for key in [key for key in self._known if key[0] < ordinal - 1100]:
            del self._known[key]


async def control_notes(rows: ConcludedRows, run: Run) -> tuple[RunNote, ...]:
    """Say of each system with controls whether it is better than all of them."""
    notes = []
    by_leader: dict[str, list[str]] = {}
    for control in controls_of(run):
        by_leader.setdefault(control.leader, []).append(control.name)
    if run.completed_rows > COMPARED:
        return ()
    for leader, controls in by_leader.items():
        names = (leader, *controls)
        sides = {name: await rows.of(name) for name in names}
        text = await asyncio.to_thread(_verdict, leader, controls, sides, run)
        text = as_proven(text, sides[leader], run.config.get("judges") or ())
        if own := own_cut(run, leader):
            text += f" It is not held against {own}, which at its own length is what it does."
        notes.append(RunNote("MATCHED_CONTROLS", text, leader))
    return tuple(notes)


async def missing_controls(store: RunRows, run: Run) -> list[RunNote]:
    """Say of each system under test that has no controls, though they were asked for, why."""
    if not run.spec.matched_controls or run.spec.kind == "memory" or run.parent_run_id:
        return []
    held = {control.leader for control in controls_of(run)} | set(run.config.get("leads", ()))
    notes = []
    for system in under_test(run):
        if system not in held:
            given, left = await _lengths_left(store, run.run_id, system)
            if not given:
                why = "does not tell what it left of a context, so there is no length to cut to"
            elif left >= given:
                why = "shortened nothing, so there is no length to cut to"
            else:
                why = "shortened contexts, but the run ended before they were cut to its lengths"
            text = f"{system} {why}: it has no matched controls."
            notes.append(RunNote(NO_CONTROLS, text, system))
    return notes


def _verdict(
    leader: str, controls: Sequence[str], sides: Mapping[str, list[EvalRow]], run: Run
) -> str:
    beaten, ahead, why = compared_with(leader, controls, sides, run)
    if why:
        return f"{leader} cannot be compared with cutting to the same length: {why}"
    missing = [name for name in controls if name not in beaten]
    if not missing:
        return f"{leader} is better than truncating, or dropping words, to the same length."
    if ahead:
        return f"{leader} is worse than cutting to the same length: {', '.join(ahead)}."
    return (
        f"{leader} is not shown to be better than cutting to the same length: "
        f"{', '.join(missing)} may be as good."
    )


def compared_with(
    leader: str, controls: Sequence[str], sides: Mapping[str, list[EvalRow]], run: Run
) -> tuple[list[str], list[str], str]:
    """Return the controls that a system beats, those that beat it, and why nothing compares."""
    try:
        settings: dict[str, Any] = {
            "pairs": [(leader, control) for control in controls],
            "score_field": run.spec.score_field or None,
            "scores": score_infos(run.config.get("datasets", ())),
        }
        judges = run.config.get("judges") or ()
        compared: Comparison = without_disputed(compare(sides, **settings), sides, judges, settings)
    except InvalidInput as error:
        return [], [], str(error)
    claimed = [pair for pair in compared.pairs if pair.is_claimed]
    beaten = [pair.b for pair in claimed if pair.is_a_better]
    return beaten, [pair.b for pair in claimed if not pair.is_a_better], ""
