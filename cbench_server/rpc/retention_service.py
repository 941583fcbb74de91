"""Which stored runs are kept and which are let go, for clients: pins and pruning."""

from collections.abc import Awaitable, Callable
from typing import Any

from cbench_client._gen.cbench.v1 import bench_pb2
from cbench_server.errors import InvalidInput, UnknownRun
from cbench_server.rpc.rows import optional
from cbench_server.rpc.stored_source import StoredSource
from cbench_server.rpc.times import seconds_of, set_seconds
from cbench_server.runs.callers import audit
from cbench_server.runs.orchestrator import Orchestrator
from cbench_server.runs.store import RetentionRule

Tidy = Callable[[], Awaitable[list[str]]]
"""Removes files that nothing needs any more, and returns their names."""


class RetentionMethods:
    """The methods of the Bench service that keep runs or let them go."""

    def __init__(self, orchestrator: Orchestrator, tidy: Tidy) -> None:
        self._keeper = orchestrator
        self._tidy = tidy

    async def PinRun(
        self, request: bench_pb2.PinRunRequest, context: Any
    ) -> bench_pb2.PinRunResponse:
        store = self._keeper.store
        run_id = await StoredSource(store, self._keeper.as_it_is).named(request.run_id, "run_id")
        action = "unpin" if request.unpin else "pin"
        try:
            await self._check_own(run_id, action)
            await store.pin(run_id, not request.unpin)
        except UnknownRun as error:
            error.field = "run_id"
            raise
        audit(action, f"{action}ned run {run_id}", run_id=run_id)
        return bench_pb2.PinRunResponse(run_id=run_id, pinned=not request.unpin)

    async def PruneRuns(
        self, request: bench_pb2.PruneRunsRequest, context: Any
    ) -> bench_pb2.PruneRunsResponse:
        rule = _rule(request)
        store = self._keeper.store
        removed: list[str] = []
        if not request.dry_run:
            await store.finish_deletions()
        pruned = await store.prune(rule, dry_run=request.dry_run)
        if not request.dry_run:
            removed = await self._tidy()
            audit("prune", f"pruned {len(pruned)} runs", runs=[each.run_id for each in pruned])
        response = bench_pb2.PruneRunsResponse(removed_files=removed)
        for each in pruned:
            message = response.runs.add(run_id=each.run_id, size_bytes=each.size, why=each.why)
            set_seconds(message.end_time, each.end_time)
        return response

    async def _check_own(self, run_id: str, action: str) -> None:
        raise NotImplementedError


def _rule(request: bench_pb2.PruneRunsRequest) -> RetentionRule:
    rule = RetentionRule(
        older_than=seconds_of(request, "older_than"),
        keep=optional(request, "keep"),
        max_bytes=optional(request, "max_bytes"),
    )
    if rule == RetentionRule():
        raise InvalidInput("say which runs to delete: set older_than, keep or max_bytes.")
    limits = {"older_than": rule.older_than, "keep": rule.keep, "max_bytes": rule.max_bytes}
    for name, value in limits.items():
        if value is not None and value < 0:
            raise InvalidInput(f"{name} must not be negative; it is {value:g}.", field=name)
    return rule
