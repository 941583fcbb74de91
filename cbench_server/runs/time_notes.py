"""Notes on times: what a reader of a run's latencies should know."""

from cbench_server.results import RETRIED_ALONE, Summary
from cbench_server.runs.connections import Connections
from cbench_server.spec import RunNote
from cbench_server.systems.caller import BUILTIN

SHARED_MACHINE = "SHARED_MACHINE"


def time_notes(summary: Summary, opened: Connections | None) -> list[RunNote]:
    """Say which rows were tried again alone, and which systems share a machine."""
    notes = []
    for system, values in summary.items():
        if retried := int(values.get("num_retried_alone") or 0):
            rows = "1 row" if retried == 1 else f"{retried:,} rows"
            verb = "was" if retried == 1 else "were"
            text = (
                f"{rows} of {system} timed out while other calls were in flight, and {verb} tried "
                "again alone."
            )
            notes.append(RunNote(RETRIED_ALONE, text, system))
    described = [caller.description for caller in opened.callers] if opened else []
    # The controls take microseconds.
    local = [
        system.name
        for system in described
        if system.is_on_this_machine and system.location != BUILTIN
    ]
    if len(local) > 1:
        text = (
            "Times under load contain each other's, times alone do not, where systems share the "
            f"daemon's machine: {', '.join(local)}."
        )
        notes.append(RunNote(SHARED_MACHINE, text))
    return notes
