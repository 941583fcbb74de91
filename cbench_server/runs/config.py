"""The record of how a run was made, so that it can be repeated."""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from cbench_server.runs.plan import DatasetPlan
from cbench_server.runs.resolution import ResolvedDataset
from cbench_server.runs.wiring import missing_references
from cbench_server.spec import RunSpec
from cbench_server.systems.caller import Caller
from cbench_server.version import __version__


def describe_config(
    spec: RunSpec,
    callers: Sequence[Caller],
    datasets: Sequence[ResolvedDataset],
    plans: Mapping[str, DatasetPlan],
) -> dict[str, Any]:
    """Record everything needed to repeat the run, and what is known to go wrong with it."""
    # A dataset of ours has what its score needs; a file may not.
    notices = [
        missing_references(dataset.ref.label, plans[dataset.ref.label], dataset.originals())
        for dataset in datasets
        if dataset.record is None
    ]
    return {
        "notices": [notice for notice in notices if notice],
        "cbench_version": __version__,
        "python_version": platform.python_version(),
        "platform": platform.platform(),
        "tokenizer": spec.tokenizer or "cl100k_base",
        "seed": spec.seed,
        "systems": [asdict(caller.description) for caller in callers],
        "datasets": [
            {
                **dataset.describe(),
                **plans[dataset.ref.label].describe(),
                "is_official_metric": dataset.record.official if dataset.record else False,
            }
            for dataset in datasets
        ],
    }
