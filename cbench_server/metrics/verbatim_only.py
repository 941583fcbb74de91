"""Notes on evidence recall: it is found word for word, which says little of what was rewritten."""

from collections.abc import Collection, Sequence

from cbench_server.results import Summary
from cbench_server.spec import RunNote

VERBATIM_ONLY = "VERBATIM_ONLY"
# Labels and joints between passages that were picked make up less than the rest.
_HANDED_ON = 0.9


def verbatim_notes(summary: Summary) -> list[RunNote]:
    """Name the systems that have evidence recall and do not hand on the text as it was."""
    return [
        RunNote(VERBATIM_ONLY, _sentence(system, share), system)
        for system, values in summary.items()
        if values.get("mean_score:evidence_recall") is not None
        and (share := values.get("mean_score:context_verbatim")) is not None
        and share < _HANDED_ON
    ]


def rewriting(notes: Sequence[RunNote]) -> frozenset[str]:
    """Return the systems whose evidence recall is marked."""
    return frozenset(note.system for note in notes if note.code == VERBATIM_ONLY)


def said_of(notes: Sequence[RunNote], systems: Collection[str], score: str) -> tuple[str, ...]:
    """Return what belongs beside a figure of some systems, if it is one of evidence."""
    if not score.startswith("evidence_"):
        return ()
    return tuple(
        note.text for note in notes if note.code == VERBATIM_ONLY and note.system in systems
    )


def _sentence(system: str, share: float) -> str:
    return (
        f"{system}: evidence recall is verbatim only. Of its words {share:.0%} stand in the "
        "original in that order, so what it kept in other words counts as lost."
    )
