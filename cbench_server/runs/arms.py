"""Arms that a run adds by itself, once its systems are through: anchors and matched controls."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cbench_server.runs.plan import ExampleSource, FailureBudget, Plan
from cbench_server.runs.run_rows import RunRows
from cbench_server.runs.spool import Spool
from cbench_server.runs.store import RunStore
from cbench_server.spec import Run
from cbench_server.systems.caller import Caller


@dataclass(frozen=True)
class Arms:
    """What is called in addition, and how."""

    callers: Sequence[Caller]
    repeats: Mapping[str, int]
    """How often each gets an example."""
    config: Mapping[str, Any]
    """What the run's config says of them, so that a resumed run has the same."""
    source: ExampleSource | None = None
    """Their examples, where that is not all of the run's."""
    may_fail: bool = False
    """Whether their failures are no reason to stop the run."""

    def planned(self, plan: Plan) -> Plan:
        """Return how they are run; nobody wants to know how quick they are."""
        budget = FailureBudget() if self.may_fail else plan.failure_budget
        return replace(
            plan,
            callers=self.callers,
            repeats_of=self.repeats,
            timed_rows=0,
            failure_budget=budget,
        )

    async def announce(self, store: RunRows, run: Run) -> Run:
        """Put them on record as systems of the run."""
        systems = (*(name for name in run.systems if name not in self.names), *self.names)
        changes: dict[str, Any] = {"systems": systems, "config": {**run.config, **self.config}}
        await store.append(run.run_id, [], update=changes)
        return replace(run, **changes)

    async def examples(self, store: RunStore, run_id: str) -> ExampleSource:
        """Return what they are run on, all of which is in the store."""
        if self.source is not None:
            return self.source
        spool = Spool(store, run_id, {}, len(self.callers))
        await spool.fill()
        return spool

    @property
    def names(self) -> list[str]:
        """What their rows carry."""
        return [caller.description.name for caller in self.callers]
