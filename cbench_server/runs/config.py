"""The record of how a run was made, so that it can be repeated."""

from collections.abc import Mapping, Sequence
from typing import Any

from cbench_server.datasets.prompts.prompt import Asking, Prompt
from cbench_server.runs.answers import Told
from cbench_server.runs.departures import followed
from cbench_server.runs.environment import describe_environment
from cbench_server.runs.plan import DatasetPlan
from cbench_server.runs.prompting import axis_of
from cbench_server.runs.resolved_dataset import ResolvedDataset
from cbench_server.runs.shortfalls import published_examples
from cbench_server.runs.wiring import missing_references
from cbench_server.spec import RunNote, RunSpec, SystemRef
from cbench_server.systems.caller import Caller

NO_REFERENCES = "NO_REFERENCES"
_DIRTY = "-dirty"


def describe_prompts(prompts: Mapping[str, Asking], told: Mapping[str, Told]) -> dict[str, Any]:
    """Record what models were told, by dataset, and what of it each system's rows depend on."""
    return {
        "told": dict(told),
        "datasets": {label: asking.prompt.describe() for label, asking in prompts.items()},
    }


def describe_config(
    spec: RunSpec,
    callers: Sequence[Caller],
    datasets: Sequence[ResolvedDataset],
    plans: Mapping[str, DatasetPlan],
    prompts: Mapping[str, Asking],
) -> dict[str, Any]:
    """Record everything needed to repeat the run."""
    launched = {ref.target or ref.name: _launched(ref) for ref in spec.systems}
    return {
        **describe_environment(),
        "tokenizer": spec.tokenizer or "cl100k_base",
        "seed": spec.seed,
        "systems": [
            {
                **caller.description.recorded,
                **(launched.get(caller.description.location) or {}),
                **(launched.get(caller.description.name) or {}),
            }
            for caller in callers
        ],
        "datasets": [
            _dataset(dataset, plans[dataset.ref.label], prompts[dataset.ref.label].prompt)
            for dataset in datasets
        ],
    }


def _launched(ref: SystemRef) -> dict[str, Any]:
    """Record what the client that launched a system says of it."""
    known: dict[str, Any] = {"log": ref.log} if ref.log else {}
    if ref.revision:
        commit = ref.revision.removesuffix(_DIRTY)
        known["source"] = {"commit": commit, "dirty": commit != ref.revision}
    return known


def notes_before(
    datasets: Sequence[ResolvedDataset], plans: Mapping[str, DatasetPlan]
) -> tuple[RunNote, ...]:
    """Say before the first call what is known to go wrong with the run."""
    # A dataset of ours has what its score needs; a file may not.
    files = [dataset for dataset in datasets if dataset.record is None]
    found = [
        (missing_references(label, plans[label], dataset.originals()), label)
        for dataset in files
        for label in [dataset.ref.label]
    ]
    return tuple(RunNote(NO_REFERENCES, text, dataset=label) for text, label in found if text)


def _dataset(dataset: ResolvedDataset, plan: DatasetPlan, prompt: Prompt) -> dict[str, Any]:
    """Record what is read and how it is scored, beside the official protocol."""
    described = dataset.describe()
    protocol = followed(
        dataset.protocol, described, plan, revision=dataset.ref.revision, prompt=axis_of(prompt)
    )
    return {
        **described,
        **published_examples(dataset),
        **plan.describe(),
        "protocol": protocol.describe() if protocol.follows else None,
        "is_official_metric": dataset.record is not None and protocol.metric.status == "same",
    }
