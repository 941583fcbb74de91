"""Which stored runs a daemon keeps and which it lets go: pins and pruning."""

from cbench_client._gen.cbench.v1 import bench_pb2
from cbench_client.bench.analysis import AnalysisClient


class RetentionClient(AnalysisClient):
    """The methods of `BenchClient` that keep runs or let them go."""

    def pin(self, run_id: str) -> str:
        """Keep a run from being pruned; return its id. `last` and prefixes name it, too."""
        return self._pin(run_id, unpin=False)

    def unpin(self, run_id: str) -> str:
        """Let a run be pruned again; return its id."""
        return self._pin(run_id, unpin=True)

    def prune(
        self,
        *,
        older_than: float | None = None,
        keep: int | None = None,
        max_bytes: int | None = None,
        dry_run: bool = False,
    ) -> bench_pb2.PruneRunsResponse:
        """Delete finished runs that are old, many or large; pinned ones stay.

        Lets go what ended more than `older_than` seconds ago, all but the newest `keep`, and the
        oldest until the store takes at most `max_bytes`. `dry_run` only says which they are.
        """
        request = bench_pb2.PruneRunsRequest(keep=keep, max_bytes=max_bytes, dry_run=dry_run)
        if older_than is not None:
            request.older_than.FromNanoseconds(round(older_than * 1e9))
        return self._call_long("PruneRuns", request, bench_pb2.PruneRunsResponse)

    def _pin(self, run_id: str, *, unpin: bool) -> str:
        request = bench_pb2.PinRunRequest(run_id=run_id, unpin=unpin)
        return self._call_long("PinRun", request, bench_pb2.PinRunResponse).run_id
