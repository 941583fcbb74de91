"""Judges of local evaluations: tested like those of stored runs, and marked where they fail."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from cbench_server.contract import info_of, optional_method
from cbench_server.errors import RunFailed
from cbench_server.models.probe import probe
from cbench_server.runs.judging import (
    MOST_EXAMPLES,
    CheckMemory,
    Record,
    admit,
    check_judges,
    judges_of,
)
from cbench_server.runs.leaks import leaks_in
from cbench_server.runs.plan import DatasetPlan
from cbench_server.runs.store import SpooledExample
from cbench_server.spec import RunNote, RunSpec
from cbench_server.types import Evaluator, Example

_CHECKS = CheckMemory()
# Nobody is there to ask whether to go on, so figures are marked and a warning is given.
_SPEC = RunSpec((), (), allow_unqualified_judges=True)


async def check_local_judges(
    given: Mapping[str, DatasetPlan], examples: Sequence[SpooledExample]
) -> list[Record]:
    """Test the judges among the evaluators; one that fails marks its scores."""
    by_dataset = {label: judges_of(plan.evaluators) for label, plan in given.items()}
    judges = list({id(each): each for found in by_dataset.values() for each in found}.values())
    for judge in judges:
        await probe("the judge", judge)
    if not judges:
        return []
    by_label: dict[str, list[Example]] = {}
    for entry in examples:
        by_label.setdefault(entry.dataset, []).append(entry.example)
    plans = {label: DatasetPlan(by_dataset[label]) for label in by_label if by_dataset[label]}

    async def read(label: str) -> list[Example]:
        return by_label[label][:MOST_EXAMPLES]

    try:
        records = await check_judges(plans, read, 0, _CHECKS)
    except RunFailed as error:
        records = [
            _broken(judge, label, str(error))
            for label, plan in plans.items()
            for judge in plan.evaluators
        ]
    finally:
        for judge in judges:
            if (close := optional_method(judge, "close_connections")) is not None:
                await close()
    records = admit(records, plans, _SPEC)
    options: dict[str, Mapping[str, Any]] = {
        judge.name: info_of(judge).options or {} for judge in judges
    }
    for record in records:
        record["self_graded"] = bool(options[record["evaluator"]].get("self_graded"))
        if not record["qualified"]:
            warnings.warn(
                f"judge {record['model']} with pack {record['pack']} did not pass its controls: "
                f"{record['why']}. Its scores say little.",
                stacklevel=2,
            )
    return records


def leaks_of(
    plans: Mapping[str, DatasetPlan], examples: Sequence[SpooledExample], kind: str
) -> list[RunNote]:
    """Say what systems see of the answers, where a judge is asked about theirs."""
    notes = []
    for label, plan in plans.items():
        # Where nothing is withheld, that was asked for.
        if not plan.reference_fields or not judges_of(plan.evaluators):
            continue
        given = [entry.example for entry in examples if entry.dataset == label][:MOST_EXAMPLES]
        found = leaks_in(given, plan.reference_fields, is_memory=kind == "memory")
        notes += [RunNote("LEAK", text, dataset=label) for text in found]
    return notes


def _broken(judge: Evaluator, dataset: str, why: str) -> Record:
    said = info_of(judge)
    options = said.options or {}
    return {
        "evaluator": judge.name,
        "dataset": dataset,
        "scores": [score.name for score in said.scores],
        "url": str(options.get("base_url", "")),
        "model": str(options.get("model", "")),
        "pack": str(options.get("pack", "")),
        "kind": "",
        "kinds": {},
        "qualified": False,
        "why": why,
    }
