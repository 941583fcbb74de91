"""Notes on times: what a reader of a run's latencies should know."""

from collections.abc import Iterable

from cbench_server.results import RETRIED_ALONE, Summary
from cbench_server.spec import RunNote
from cbench_server.systems.caller import SystemDescription

SHARED_MACHINE = "SHARED_MACHINE"
_CODES = frozenset({RETRIED_ALONE, SHARED_MACHINE})


def with_time_notes(
    earlier: Iterable[RunNote], summary: Summary, systems: Iterable[SystemDescription]
) -> tuple[RunNote, ...]:
    """Add notes on times to those of others; earlier ones on times are made anew."""
    notes = [note for note in earlier if note.code not in _CODES]
    for system, values in summary.items():
        if retried := int(values.get("num_retried_alone") or 0):
            rows = "1 row" if retried == 1 else f"{retried:,} rows"
            verb = "was" if retried == 1 else "were"
            text = (
                f"{rows} of {system} timed out while other calls were in flight, and {verb} tried "
                "again alone."
            )
            notes.append(RunNote(RETRIED_ALONE, text, system))
    local = [system.name for system in systems if system.is_on_this_machine]
    if len(local) > 1:
        text = (
            f"{', '.join(local[:-1])} and {local[-1]} share the daemon's machine: their times "
            "under load contain each other's, times alone do not."
        )
        notes.append(RunNote(SHARED_MACHINE, text))
    return tuple(notes)
