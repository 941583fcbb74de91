"""Reports for a benchmark's own program, which takes one system's answers to that benchmark."""

from cbench_server.errors import InvalidInput
from cbench_server.reports.report import Report


def only_system(report: Report, program: str, datasets: tuple[str, ...]) -> str:
    """Return the one system of a run of these datasets; raise InvalidInput if it is another run."""
    others = [ref.label for ref in report.run.spec.datasets if ref.name not in datasets]
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
