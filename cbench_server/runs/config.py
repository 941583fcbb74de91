"""The record of how a run was made, so that it can be repeated."""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from cbench_server.runs.plan import DatasetPlan
from cbench_server.runs.resolution import ResolvedDataset
from cbench_server.spec import RunSpec
from cbench_server.systems.caller import Caller
from cbench_server.version import __version__


def describe_config(
    spec: RunSpec,
    callers: Sequence[Caller],
    datasets: Sequence[ResolvedDataset],
    plans: Mapping[str, DatasetPlan],
) -> dict[str, Any]:
    """Record everything needed to repeat the run."""
    logs = {ref.target: {"log": ref.log} for ref in spec.systems if ref.log}
    return {
        "cbench_version": __version__,
        "python_version": platform.python_version(),
        "platform": platform.platform(),
        "tokenizer": spec.tokenizer or "cl100k_base",
        "seed": spec.seed,
        "systems": [
            {**asdict(caller.description), **logs.get(caller.description.location, {})}
            for caller in callers
        ],
        "datasets": [
            {
                **dataset.describe(),
                **plans[dataset.ref.label].describe(),
                "is_official_metric": dataset.record.official if dataset.record else False,
            }
            for dataset in datasets
        ],
    }
