"""Reports for a benchmark's own program, which takes one system's answers to that benchmark."""

from collections.abc import Mapping
from typing import Any

from cbench_server.errors import InvalidInput
from cbench_server.reports.report import Report


def only_system(report: Report, program: str, datasets: tuple[str, ...], source: str = "") -> str:
    """Return the one system of a run of these datasets; raise InvalidInput if it is another run.

    A file of any name is one of them if its protocol follows rules of the repository `source`.
    """
    protocols = {
        each.get("label"): each.get("protocol") or {}
        for each in report.run.config.get("datasets", ())
    }
    others = [
        ref.label
        for ref in report.run.spec.datasets
        if ref.name not in datasets and not _is_from(source, protocols.get(ref.label, {}))
    ]
    if others:
        raise InvalidInput(
            f"{program} takes answers to {' or '.join(datasets)}, and this run has those to "
            f"{', '.join(dict.fromkeys(others))}. Other formats take any run, such as jsonl."
        )
    ranked = report.run.ranked
    if len(ranked) != 1:
        raise InvalidInput(
            f"{program} takes the answers of one system at a time, and this run has "
            f"{', '.join(ranked)}. Run each of them by itself."
        )
    return ranked[0]


def _is_from(source: str, protocol: Mapping[str, Any]) -> bool:
    return bool(source) and str(protocol.get("follows", "")).startswith(f"{source},")
