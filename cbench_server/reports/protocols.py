"""Notes on protocols: where a run is not what a benchmark's authors do."""

from collections.abc import Mapping
from typing import Any

from cbench_server.spec import Run

_AXES = ("data", "prompt", "metric", "aggregation")


def has_other_metric(run: Run) -> bool:
    """Whether a dataset's score is not the benchmark's own."""
    return any(map(_is_other_metric, run.config.get("datasets", [])))


def _is_other_metric(dataset: Mapping[str, Any]) -> bool:
    # Runs of earlier versions have one bit for all of it.
    if dataset.get("protocol"):
        return bool(dataset["protocol"]["axes"]["metric"]["status"] != "same")
    return not dataset.get("is_official_metric") and not dataset.get("upload")


def protocol_notes(run: Run) -> list[str]:
    """Say of each dataset on which axes it is not as its authors have it."""
    lines = []
    for dataset in run.config.get("datasets", []):
        label, mark = dataset.get("label", ""), "* " if _is_other_metric(dataset) else ""
        if protocol := dataset.get("protocol"):
            if found := differences(protocol["axes"]):
                lines.append(f"{mark}{label} is not run as its authors do: {' '.join(found)}")
        elif mark:
            lines.append(f"{mark}Not the official metric of {label}.")
    return lines


def differences(axes: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return a phrase for each axis that is not the same, such as `metric differs (why).`"""
    found = [(name, axes.get(name) or {}) for name in _AXES]
    return [
        f"{name} {said['status']} ({said.get('why', '').rstrip('.')})."
        for name, said in found
        if said.get("status", "same") != "same"
    ]
