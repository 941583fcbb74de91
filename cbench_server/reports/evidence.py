"""Evidence recall of a run: the second axis beside the score that counts."""

from cbench_server.metrics.verbatim_only import rewriting
from cbench_server.reports.scores import COUNT, MEAN
from cbench_server.reports.sweeps import listed
from cbench_server.spec import Run
from cbench_server.texts import numbers
from cbench_server.texts.grid import Grid

VERBATIM = "verbatim only"
_RECALL = f"{MEAN}evidence_recall"
_TITLES = {
    f"{MEAN}evidence_complete": "All of it",
    **{f"{_RECALL}_at_{rank}": f"Recall@{rank}" for rank in (1, 5, 10)},
}


def evidence_grid(run: Run) -> Grid | None:
    """Build the table of what is left, or was retrieved, of the evidence; None without any."""
    summaries = {system: run.summary.get(system, {}) for system in listed(run)}
    scored = {name: each for name, each in summaries.items() if each.get(_RECALL) is not None}
    if not scored:
        return None
    keys = [key for key in _TITLES if any(each.get(key) is not None for each in scored.values())]
    marked = rewriting(run.notes) & scored.keys()
    rows = [
        (
            system,
            numbers.score(each.get(_RECALL)),
            numbers.interval(each.get(f"{_RECALL}_ci_low"), each.get(f"{_RECALL}_ci_high")),
            *(numbers.score(each.get(key)) for key in keys),
            numbers.count(each.get(f"{COUNT}evidence_recall")),
            *([VERBATIM if system in marked else ""] if marked else []),
        )
        for system, each in scored.items()
    ]
    header = ("System", "Recall", "95% CI", *(_TITLES[key] for key in keys), "Rows")
    return Grid(
        (*header, "Mark") if marked else header,
        tuple(rows),
        frozenset({len(header)}) if marked else frozenset(),
        title="Evidence: the share of what holds the answer that is left, word for word",
    )
