"""Summary of a stored run, from its rows and nothing else."""

from cbench_server.metrics.outcomes import score_infos
from cbench_server.metrics.summary import Summarizer
from cbench_server.registry import Registry
from cbench_server.runs.resolution import resolve_metrics
from cbench_server.runs.store import RunStore
from cbench_server.spec import Run


def new_summarizer(run: Run, registry: Registry) -> Summarizer:
    """Return what takes the rows of a run."""
    scores = score_infos(run.config.get("datasets", ()))
    return Summarizer(resolve_metrics(run.spec, registry), run.systems, scores)


async def read_back(store: RunStore, run: Run, registry: Registry) -> Summarizer:
    """Return what has taken all rows of a run."""
    summarizer = new_summarizer(run, registry)
    for system in run.systems:
        async for page in store.iterate_rows(run.run_id, system):
            summarizer.extend(page)
    return summarizer
