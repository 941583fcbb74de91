"""Judging: the judges of a run are tested on controls before their first verdict."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from cbench_server.contract import info_of, optional_method
from cbench_server.errors import CbenchError, InvalidSpec, RunFailed
from cbench_server.results import EvalRow, Failure
from cbench_server.runs.digests import canonical_digest
from cbench_server.runs.plan import DatasetPlan
from cbench_server.spec import RunSpec
from cbench_server.types import Evaluator, Example

UNQUALIFIED, SELF_GRADED = "JUDGE_UNQUALIFIED", "SELF_GRADED"
"""Marks of rows whose judge a reader has to know about."""
MOST_EXAMPLES = 400
"""The examples that controls are made from, at most: the first ones of a run."""

ReadExamples = Callable[[str], Awaitable[Sequence[Example]]]
"""Reads the first examples of a dataset, by its label."""
Record = dict[str, Any]


class Checks(Protocol):
    """What judges said of controls before, by what that depends on."""

    def get(self, key: str) -> Record | None:
        """Return a record, if there is one."""
        ...

    def put(self, key: str, record: Record) -> None:
        """Keep a record."""
        ...


class CheckMemory:
    """Checks of this process."""

    def __init__(self) -> None:
        self._records: dict[str, Record] = {}

    def get(self, key: str) -> Record | None:
        """Return a record, if there is one."""
        return self._records.get(key)

    def put(self, key: str, record: Record) -> None:
        """Keep a record."""
        self._records[key] = record


def judges_of(evaluators: Sequence[Evaluator]) -> list[Evaluator]:
    """Return the evaluators that can be tested on controls."""
    return [each for each in evaluators if optional_method(each, "qualify") is not None]


def check_labels(spec: RunSpec, plans: Iterable[DatasetPlan]) -> None:
    """Refuse labels of people where no judge gives verdicts to set them beside."""
    if spec.labels_upload and not any(judges_of(plan.evaluators) for plan in plans):
        raise InvalidSpec(
            "labels are set beside the verdicts of a judge, and the run has none.",
            field="spec.labels_upload",
            flags="Name a judge with --judge-url URL.",
        )


async def check_judge(
    judge: Evaluator, examples: Sequence[Example], seed: int, checks: Checks
) -> Record:
    """Test one judge on controls made from examples, unless that was done before."""
    qualify, identity = (
        optional_method(judge, "qualify"),
        optional_method(judge, "control_identity"),
    )
    assert qualify is not None
    assert identity is not None
    digest = await asyncio.to_thread(canonical_digest, {"examples": list(examples)})
    key = canonical_digest({"examples": digest, "seed": seed, "judge": identity()})
    known = await asyncio.to_thread(checks.get, key)
    if known is not None:
        return {**known, "cached": True}
    record: Record = {**await qualify(examples, len(examples), seed), "examples": digest}
    await asyncio.to_thread(checks.put, key, record)
    return record


async def check_judges(
    plans: Mapping[str, DatasetPlan], read: ReadExamples, seed: int, checks: Checks
) -> list[Record]:
    """Test every judge on every dataset of a run; raise RunFailed if one cannot be asked."""
    records: list[Record] = []
    for label, plan in plans.items():
        judges = judges_of(plan.evaluators)
        examples = await read(label) if judges else ()
        for judge in judges:
            try:
                record = await check_judge(judge, examples, seed, checks)
            except CbenchError as error:
                failure = Failure("evaluator", "JUDGE_BROKEN", f'judge "{judge.name}": {error}')
                raise RunFailed(failure, who=f'evaluator "{judge.name}"') from error
            scores = [score.name for score in info_of(judge).scores]
            records.append({"evaluator": judge.name, "dataset": label, "scores": scores, **record})
    return records


def admit(
    records: Sequence[Record], plans: Mapping[str, DatasetPlan], spec: RunSpec
) -> list[Record]:
    """Mark judges that did not qualify, or are the model under test; return the records with that.

    Raises RunFailed if none qualifies, unless the spec goes on with such judges.
    """
    qualified = [record for record in records if record["qualified"]]
    if records and not qualified and not spec.allow_unqualified_judges:
        complaints = "; ".join(
            f"{record['model']} with pack {record['pack']} on {record['dataset']}: {record['why']}"
            for record in records
        )
        raise RunFailed(
            Failure(
                "evaluator",
                "JUDGE_UNQUALIFIED",
                f"no judge passed its controls ({complaints}). Choose another model or --pack, "
                "or go on with marked figures: --judge-unqualified",
            ),
            who=f'evaluator "{records[0]["evaluator"]}"',
        )
    marked = [{**record, "self_graded": is_self_graded(record, spec)} for record in records]
    for record in marked:
        for judge in judges_of(plans[record["dataset"]].evaluators):
            if judge.name == record["evaluator"]:
                _mark(judge, record)
    return marked


def _mark(judge: Evaluator, record: Record) -> None:
    mark = optional_method(judge, "mark")
    if mark is not None:
        marks = {"unqualified": not record["qualified"], "self_graded": record["self_graded"]}
        mark({name: True for name, is_set in marks.items() if is_set})


def is_self_graded(record: Record, spec: RunSpec) -> bool:
    """Whether the judge's model is, or may silently be, the one under test."""
    for ref in spec.evaluators:
        name = f"{ref.name}:{ref.label}" if ref.label else ref.name
        if name == record["evaluator"] and (
            ref.options.get("self_graded") or "model" not in ref.options
        ):
            return True
    return any(_same(record["model"], model) for model in models_under_test(spec))


def models_under_test(spec: RunSpec) -> list[str]:
    """Return the models whose answers are judged, as far as the spec names them."""
    models = [system.proxy.model for system in spec.systems if system.proxy is not None]
    if spec.reader is not None:
        models.append(spec.reader.model)
    return [model for model in models if model]


def _same(a: str, b: str) -> bool:
    # A gateway adds the provider's name in front.
    return a.lower().rpartition("/")[2] == b.lower().rpartition("/")[2]


def mark_rows(rows: Sequence[EvalRow], records: Sequence[Record]) -> None:
    """Put on each row what a reader must know of its judges."""
    marks = {
        (record["dataset"], record["evaluator"]): tuple(
            code
            for code, is_set in (
                (UNQUALIFIED, not record["qualified"]),
                (SELF_GRADED, record["self_graded"]),
            )
            if is_set
        )
        for record in records
    }
    if not any(marks.values()):
        return
    for row in rows:
        found = [
            code
            for (dataset, evaluator), codes in marks.items()
            if dataset == row.dataset
            and evaluator in row.details
            and evaluator not in row.evaluator_failures
            for code in codes
        ]
        row.marks = tuple(dict.fromkeys([*row.marks, *found]))
