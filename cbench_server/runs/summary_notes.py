"""Notes on a summary: outputs that win a score by saying everything, and metrics that failed."""

from collections.abc import Mapping

from cbench_server.metrics.summary import Summarized
from cbench_server.metrics.verbatim_only import verbatim_notes
from cbench_server.runs.likelihood_notes import likelihood_notes
from cbench_server.runs.padding import padding_note
from cbench_server.runs.stuffing import stuffing_note
from cbench_server.spec import RunNote

METRIC_FAILED = "METRIC_FAILED"
SCORED_AGAIN = "SCORED_AGAIN"


def summary_notes(found: Summarized, rows: Mapping[str, int]) -> list[RunNote]:
    """Say what a reader of the summary must know; `rows` counts those of each system."""
    notes = []
    for system, values in found.summary.items():
        whole = rows.get(system, 0)
        notes += [
            padding_note(system, int(values.get("num_padded") or 0), whole),
            stuffing_note(system, int(values.get("num_stuffed") or 0), whole),
        ]
    failed = [
        RunNote(METRIC_FAILED, f'Metric "{name}" lacks values: {why.rstrip(".")}.')
        for name, why in found.failures.items()
    ]
    told = [*likelihood_notes(found.summary), *verbatim_notes(found.summary)]
    return [note for note in notes if note is not None] + told + failed


def incident_notes(incidents: Mapping[str, int]) -> list[RunNote]:
    """Say which rows were scored more than once, since who scored them was lost."""
    return [
        RunNote(SCORED_AGAIN, f"Scored again: {count:,} rows, since {why}. Each has one result.")
        for why, count in incidents.items()
    ]
