"""Services: what runs are worked on with, shared by all runs of a process."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from cbench_server.limits import MAX_ALL_HELD_BYTES
from cbench_server.metrics.summary import Summarized
from cbench_server.models.tracing import Tracer
from cbench_server.registry import Registry
from cbench_server.runs.connections import Finder
from cbench_server.runs.judging import CheckMemory, Checks
from cbench_server.runs.resolved_dataset import Uploads
from cbench_server.runs.slots import ByteBudget
from cbench_server.runs.store import Committed, RunStore
from cbench_server.scoring.placement import Scoring
from cbench_server.spec import PriceRef, Run


@dataclass(frozen=True)
class Services:
    """What runs are worked on with."""

    store: RunStore
    registry: Registry
    scoring: Scoring
    finder: Finder
    uploads: Uploads
    clock: Callable[[], float]
    checks: Checks = field(default_factory=CheckMemory)
    """What judges said of controls in earlier runs."""
    prices: Mapping[str, PriceRef] = field(default_factory=dict)
    """What models charge, by their names, where a run does not say."""
    held: ByteBudget = field(default_factory=lambda: ByteBudget(MAX_ALL_HELD_BYTES))
    """What runs hold in memory, all together."""
    committed: Committed | None = None
    """Told what was stored in each commit of a run, and the seconds it took."""
    tracer: Tracer | None = None
    """Keeps traces of runs."""
    missing: Callable[[Run], list[str]] | None = None
    """Names what a run needs that is not here; None where only this process takes up runs."""
    summarize_apart: Callable[[str, int], Awaitable[Summarized]] | None = None
    """Summarises a long stored run where it takes no memory of ours."""
