"""Leads: on datasets of summaries, the beginning of the text as a control for systems that answer.

A summary is worth something if it is better than the first three sentences, and
better than as much of the beginning as the system itself wrote.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from cbench_server.comparison.raters import as_proven
from cbench_server.limits import LONG_TEXT
from cbench_server.results import EvalRow
from cbench_server.runs.arms import Arms
from cbench_server.runs.chosen import Chosen
from cbench_server.runs.concluded_rows import ConcludedRows
from cbench_server.runs.connections import Connections
from cbench_server.runs.controls import COMPARED, compared_with
from cbench_server.runs.plan import scores_summaries
from cbench_server.runs.rows import Item
from cbench_server.runs.run_rows import RunRows
from cbench_server.runs.store import RowKey
from cbench_server.runs.under_test import built_in, under_test
from cbench_server.spec import Run, RunNote, SystemRef
from cbench_server.systems.caller import CONTROL, Answer, Call, Caller, SystemDescription
from cbench_server.systems.in_process import Attempt, ObjectCaller
from cbench_server.systems.matched import cut_to
from cbench_server.tokens import Tokenizer

LEAD = "lead-3"
_LOOKED_AT = 50
"""Rows that tell how long a system's answers usually are, where one is missing."""


def _name(leader: str) -> str:
    return f"lead@{leader}"


async def lead_arms(store: RunRows, run: Run, opened: Connections) -> Arms | None:
    """Return leads for each system that writes summaries itself; None where they are not wanted."""
    if not run.spec.matched_controls or run.spec.kind == "memory":
        return None
    leaders = run.config.get("leads")
    if leaders is None:
        leaders = await _writers(store, run)
    if not leaders:
        return None
    ordinals = await _summarised(store, run, leaders[0])
    tokenizer = opened.count_by(run.spec)
    callers: list[Caller] = [LeadCaller(leader, store, run.run_id, tokenizer) for leader in leaders]
    # One of another length is another baseline.
    if all(ref.builtin != "lead" or ref.options for ref in run.spec.systems):
        ref = SystemRef(name=LEAD, builtin="lead", role="control")
        callers += await opened.finder.find_systems(ref, run.spec.kind)
    names = [caller.description.name for caller in callers]
    repeats = dict.fromkeys(names, 1)
    rows = dict.fromkeys(names, len(ordinals))
    return Arms(
        callers,
        repeats,
        {
            "leads": leaders,
            "repeats": {**run.config.get("repeats", {}), **repeats},
            "fixed_rows": {**run.config.get("fixed_rows", {}), **rows},
        },
        Chosen(store, run.run_id, dict.fromkeys(names, ordinals), is_memory=False),
    )


def _summaries(run: Run) -> set[str]:
    """Name the datasets whose answers are summaries, by what scores them."""
    return {
        str(each["label"])
        for each in run.config.get("datasets", ())
        if scores_summaries(
            str(each.get("primary_score", "")),
            [str(evaluator.get("name")) for evaluator in each.get("evaluators", ())],
        )
    }


async def _writers(store: RunRows, run: Run) -> list[str]:
    """Name the systems under test that answered on such a dataset, without a reader."""
    datasets = _summaries(run)
    found = []
    for system in under_test(run) if datasets else ():
        if system not in built_in(run):
            async for page in store.iterate_rows(run.run_id, system):
                if any(row.dataset in datasets and _is_own(row) for row in page):
                    found.append(system)
                    break
    return found


def _is_own(row: EvalRow) -> bool:
    return row.failure is None and not row.context_only and not row.was_read


async def _summarised(store: RunRows, run: Run, system: str) -> list[int]:
    """Return the examples of such datasets, which every system has rows of."""
    datasets = _summaries(run)
    pages = store.iterate_rows(run.run_id, system)
    return sorted({row.ordinal async for page in pages for row in page if row.dataset in datasets})


class LeadCaller(ObjectCaller):
    """Answers with as much of the beginning as a system wrote."""

    def __init__(self, leader: str, store: RunRows, run_id: str, tokenizer: Tokenizer) -> None:
        description = SystemDescription(
            name=_name(leader),
            version="1",
            description=f"Answers with the beginning of the text, as long as {leader} answered.",
            location=CONTROL,
        )
        super().__init__(description, workers=1)
        self._leader = leader
        self._store = store
        self._run_id = run_id
        self._tokenizer = tokenizer
        self._usual: int | None = None

    def attempt(self, call: Call) -> Attempt:
        """See ObjectCaller."""

        async def run() -> Answer:
            assert isinstance(call, Item)
            example = call.spooled.example
            text = example.get("context")
            text = text if isinstance(text, str) else ""
            tokens = await self._length(call.spooled.ordinal)
            settings = (text, tokens, "truncate-tail", self._tokenizer, example["id"], 0)
            is_short = len(text) <= LONG_TEXT
            kept = cut_to(*settings) if is_short else await asyncio.to_thread(cut_to, *settings)
            return Answer(call, {"id": example["id"], "response": kept}, 0.0)

        return Attempt(run, is_async=True)

    async def _length(self, ordinal: int) -> int:
        """Return how long the system's answer is, or is usually."""
        (row,) = await self._store.read_rows_at([RowKey(self._run_id, ordinal, self._leader, 0)])
        length = self._tokens(row)
        if length is not None:
            return length
        if self._usual is None:
            keys = [RowKey(self._run_id, n, self._leader, 0) for n in range(_LOOKED_AT)]
            found = [self._tokens(each) for each in await self._store.read_rows_at(keys)]
            known = sorted(each for each in found if each is not None)
            self._usual = known[len(known) // 2] if known else 0
        return self._usual

    def _tokens(self, row: EvalRow | None) -> int | None:
        response = (row.processed or {}).get("response") if row is not None else None
        return self._tokenizer(response) if isinstance(response, str) else None


async def lead_notes(rows: ConcludedRows, run: Run) -> list[RunNote]:
    """Say of each system that writes summaries whether it is better than the beginning."""
    leaders: list[str] = run.config.get("leads", [])
    if run.completed_rows > COMPARED:
        return []
    notes = []
    for leader in leaders:
        controls = [name for name in (_name(leader), LEAD) if name in run.systems]
        names = (leader, *controls)
        sides = {name: await rows.of(name) for name in names}
        text = await asyncio.to_thread(_verdict, leader, controls, sides, run)
        text = as_proven(text, sides[leader], run.config.get("judges") or ())
        notes.append(RunNote("MATCHED_CONTROLS", text, leader))
    return notes


def _verdict(leader: str, controls: list[str], sides: Mapping[str, list[EvalRow]], run: Run) -> str:
    beaten, ahead, why = compared_with(leader, controls, sides, run)
    if why:
        return f"{leader} cannot be compared with the beginning of the text: {why}"
    missing: list[Any] = [name for name in controls if name not in beaten]
    if not missing:
        return f"{leader} is better than the beginning of the text, also at the same length."
    if ahead:
        return f"{leader} is worse than the beginning of the text: {', '.join(ahead)}."
    return (
        f"{leader} is not shown to be better than the beginning of the text: "
        f"{', '.join(missing)} may be as good."
    )
