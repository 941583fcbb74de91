"""Departures of a run from a dataset's protocol: what it read, showed or scored otherwise."""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from cbench_server.contract import info_of
from cbench_server.datasets.protocol import Axis, DatasetProtocol
from cbench_server.runs.plan import DatasetPlan
from cbench_server.types import Evaluator

# Whether a model's thinking is left out first decides what a response is, not how it is scored.
_OF_RESPONSES = "strip_thinking"


def followed(
    protocol: DatasetProtocol,
    described: Mapping[str, Any],
    plan: DatasetPlan,
    *,
    revision: str = "",
    prompt: Axis | None = None,
) -> DatasetProtocol:
    """Return a protocol as a run follows it, which reads what is described.

    `revision` is the one that was asked for, and `prompt` the axis of what
    models were told, None for what they usually are.
    """
    return protocol.in_a_run(
        split=str(described["split"]),
        part=" ".join(_of_data(protocol, described, plan, revision)),
        primary_score=plan.primary_score,
        settings=_of_metric(protocol, plan),
        aggregation=_of_aggregation(protocol, plan),
        files=described.get("files", ()),
        prompt=prompt,
    )


def _of_data(
    protocol: DatasetProtocol, described: Mapping[str, Any], plan: DatasetPlan, revision: str
) -> Iterator[str]:
    most = described.get("max_examples")
    some = [] if most is None else [f"at most {most:,}"]
    some += [f"those with {name} {text}" for name, text in described.get("where", {}).items()]
    if some:
        yield f"Of the examples {', of '.join(some)} were asked for."
    if types := described.get("question_types"):
        yield f"Of the questions those of {', '.join(types)} were asked."
    if revision and revision != protocol.revision:
        yield f"The revision {revision} was asked for."
    if mapping := described.get("mapping"):
        yield f"The run made {', '.join(sorted(mapping))} from other fields."
    shown = [name for name in protocol.withheld if name not in plan.reference_fields]
    if shown and not plan.reference_fields:
        yield f"Systems were shown {', '.join(shown)}."


def _of_metric(protocol: DatasetProtocol, plan: DatasetPlan) -> str:
    """Say by which other evaluator, or settings, the score is given that counts."""
    usual = {ref.name: ref.options for ref in protocol.evaluators}
    giving = [
        each
        for each in plan.evaluators
        if plan.primary_score in {score.name for score in info_of(each).scores}
    ]
    is_told = protocol.metric.status == "external" or plan.primary_score != protocol.primary_score
    if not giving or is_told:
        return ""
    last = giving[-1]
    if last.name not in usual:
        return f"The score is given by {last.name}."
    wanted = _unusual(usual[last.name], last)
    had = _unusual(info_of(last).options or {}, last)
    return "" if had == wanted else f"{last.name} had other settings."


def _of_aggregation(protocol: DatasetProtocol, plan: DatasetPlan) -> str:
    """Say which of the scores are missing that make the figure."""
    given = {score.name for each in plan.evaluators for score in info_of(each).scores}
    missing = [name for name in protocol.aggregate.scores if name not in given]
    return f"The run has no {' and no '.join(missing)}, so no geometric mean." if missing else ""


def _unusual(options: Mapping[str, Any], evaluator: Evaluator) -> dict[str, Any]:
    """Return the settings that are not those an evaluator has unasked."""
    usual = inspect.signature(type(evaluator)).parameters
    return {
        name: value
        for name, value in options.items()
        if name != _OF_RESPONSES and (name not in usual or usual[name].default != value)
    }
