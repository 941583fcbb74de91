"""Summary of a stored run, from its rows and nothing else."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cbench_server.metrics.outcomes import score_infos
from cbench_server.metrics.suites import suites_from
from cbench_server.metrics.summary import Summarized, Summarizer
from cbench_server.registry import Registry
from cbench_server.results import Summary
from cbench_server.runs.conduct import UNCHANGED
from cbench_server.runs.controls import NO_CONTROLS
from cbench_server.runs.finished import finished_examples, may_be_partial
from cbench_server.runs.grouping import group_notes
from cbench_server.runs.resolution import resolve_metrics
from cbench_server.runs.store import RunStore
from cbench_server.runs.suites import INCOMPLETE, complete_suites, suite_notes
from cbench_server.spec import STOPPED_BY_BUDGET, Run, RunNote, RunState


def new_summarizer(run: Run, registry: Registry) -> Summarizer:
    """Return what takes the rows of a run."""
    scores = score_infos(run.config.get("datasets", ()))
    return Summarizer(resolve_metrics(run.spec, registry), run.systems, scores)


async def read_back(store: RunStore, run: Run, registry: Registry) -> Summarizer:
    """Return what has taken all rows of a run."""
    summarizer = new_summarizer(run, registry)
    paired = await _paired(store, run)
    for system in run.systems:
        async for page in store.iterate_rows(run.run_id, system):
            summarizer.extend([row for row in page if paired is None or row.ordinal in paired])
    return summarizer


async def _paired(store: RunStore, run: Run) -> set[int] | None:
    """Return the examples that all systems have, if a budget may have ended the run before."""
    if not may_be_partial(run):
        return None
    return (await finished_examples(store, run))[0]


def checked(
    summarized: Summarized, config: Mapping[str, Any], state: RunState = RunState.SUCCEEDED
) -> Summarized:
    """Leave out figures that stand on all rows and examples only, where a run is without them."""
    suites = suites_from(config.get("suites", ()))
    return replace(summarized, summary=complete_suites(summarized.summary, suites, state))


def figure_notes(
    config: Mapping[str, Any],
    group_by: Sequence[str],
    summary: Summary,
    state: RunState = RunState.SUCCEEDED,
) -> Iterable[RunNote]:
    """Say which figures there are not, and why."""
    suites = suites_from(config.get("suites", ()))
    return (*suite_notes(suites, summary, state), *group_notes(group_by, summary))


def lasting(run: Run) -> tuple[RunNote, ...]:
    """Return the notes that a run keeps; what was said of an end before may be over."""
    over = {INCOMPLETE}
    if not run.parent_run_id:
        over |= {STOPPED_BY_BUDGET, NO_CONTROLS, UNCHANGED}
    return tuple(note for note in run.notes if note.code not in over)
