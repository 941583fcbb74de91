"""Notes on protocols: where a run is not what a benchmark's authors do."""

from collections.abc import Mapping, Sequence
from typing import Any

from cbench_server.reports.suites import suites_of
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
    datasets = {str(each.get("label", "")): each for each in run.config.get("datasets", [])}
    found = {label: _differences_of(each) for label, each in datasets.items()}
    lines = []
    for suite in suites_of(run):
        parts = [label for label in suite.parts if label in found]
        if not parts:
            continue
        # What is true of all parts is said once.
        shared = [each for each in found[parts[0]] if all(each in found[part] for part in parts)]
        is_other = all(_is_other_metric(datasets[part]) for part in parts)
        lines += _line(suite.label, shared, is_other=is_other)
        found |= {part: [each for each in found[part] if each not in shared] for part in parts}
        lines += _alike(suite.label, parts, found, datasets)
    for label, dataset in datasets.items():
        is_other = _is_other_metric(dataset)
        lines += _line(label, found[label], is_other=is_other)
        if is_other and not dataset.get("protocol"):
            lines.append(f"* Not the official metric of {label}.")
    return lines


def _alike(
    suite: str,
    parts: Sequence[str],
    found: dict[str, list[str]],
    datasets: Mapping[str, Mapping[str, Any]],
) -> list[str]:
    """Say once what is true of several parts of a suite, and take it from what is `found`."""
    groups: dict[tuple[bool, str], list[str]] = {}
    for part in parts:
        if found[part]:
            key = (_is_other_metric(datasets[part]), " ".join(found[part]))
            groups.setdefault(key, []).append(part)
    lines = []
    for (is_other, _), alike in groups.items():
        if len(alike) > 1:
            lines += _line(
                f"Each of {len(alike)} parts of {suite}", found[alike[0]], is_other=is_other
            )
            found |= {part: [] for part in alike}
    return lines


def _differences_of(dataset: Mapping[str, Any]) -> list[str]:
    return differences((dataset.get("protocol") or {}).get("axes", {}))


def _line(label: str, found: Sequence[str], *, is_other: bool) -> list[str]:
    mark = "* " if is_other else ""
    return [f"{mark}{label} is not run as its authors do: {' '.join(found)}"] if found else []


def differences(axes: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return a phrase for each axis that is not the same, such as `metric differs (why).`"""
    found = [(name, axes.get(name) or {}) for name in _AXES]
    return [
        f"{name} {said['status']} ({said.get('why', '').rstrip('.')})."
        for name, said in found
        if said.get("status", "same") != "same"
    ]
