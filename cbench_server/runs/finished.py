"""Finished examples: those of which every system has made all its rows."""

from cbench_server.runs.run_rows import RunRows
from cbench_server.spec import Run

_PAGE = 10_000


def may_be_partial(run: Run) -> bool:
    """Whether a budget, of the run or of the one whose answers it scores, may have ended it."""
    return run.spec.budget_usd is not None or "budget" in run.config


async def finished_examples(store: RunRows, run: Run) -> tuple[set[int], int | None]:
    """Return the ordinals, and how many examples there are; None if they are not all loaded.

    What a run adds by itself, such as matched controls, is not waited for.
    """
    total, is_loaded = await store.spooled(run.run_id)
    systems = run.config.get("budget", {}).get("systems") or run.systems
    finished: set[int] = set()
    for start in range(0, total, _PAGE):
        stop = min(start + _PAGE, total)
        part = set(range(start, stop))
        for system in systems:
            rows = await store.completed(run.run_id, system, start, stop)
            repeats = range(run.repeats_of(system))
            part = {each for each in part if all((each, n) in rows for n in repeats)}
        finished |= part
    return finished, total if is_loaded else None
