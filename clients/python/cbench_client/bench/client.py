"""A client of a daemon: start runs, follow them, read their rows."""

import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

import grpc

from cbench_client._gen.cbench.v1 import bench_pb2, evaluator_pb2
from cbench_client._gen.specs import EvaluatorRef, RunSpec
from cbench_client.bench.follow import FINAL_STATES, Follower
from cbench_client.bench.requests import BENCH, FINDS_NO_SERVER
from cbench_client.bench.retention import RetentionClient
from cbench_client.bench.rows import row_to_dict
from cbench_client.bench.spec import message_from_dict
from cbench_client.errors import Refused, Unreachable
from cbench_client.messages import convert
from cbench_client.messages.scores import Assessment, assessment_of, score_request
from cbench_client.remote.status import is_lost

__all__ = ["BenchClient", "row_to_dict"]

_UPLOAD_BYTES = 1024 * 1024
# How long a first contact that breaks off, unlike one that finds no server, is tried again.
_FIRST_CONTACT_SECONDS = 10.0

Spec = bench_pb2.RunSpec | RunSpec | Mapping[str, Any]


class BenchClient(RetentionClient):
    """A client of one daemon. Runs, rows and events are the protocol's own messages.

    Several daemons of one store are named with commas, `host:a,host:b`: the first
    that answers is used, and when it is lost the next.

    `timeout`, in seconds, bounds single requests; following a run ends
    with the run. May be shared by threads. Raises `Refused` for what the daemon
    declines and `Unreachable` if it cannot be reached.
    """

    def evaluate(
        self,
        spec: Spec,
        *,
        request_id: str | None = None,
        include_rows: bool = True,
        reconnect_for: float | None = None,
    ) -> Iterator[bench_pb2.RunEvent]:
        """Start a run, at the first `next`, and follow it to its end.

        A lost connection is taken up again where it broke: every stored event
        comes once and in order. `reconnect_for` bounds, in seconds, how long
        the daemon may be away; None means without end. Closing the iterator does
        not stop the run.
        """
        request = bench_pb2.EvaluateRequest(
            spec=_spec(spec),
            request_id=request_id or str(uuid.uuid4()),
            omit_rows=not include_rows,
        )

        def start() -> Any:
            return self._stream("Evaluate", request, bench_pb2.EvaluateResponse)

        return self._follow(start, "", 0, not include_rows, False, reconnect_for)

    def watch(
        self,
        run_id: str,
        after: int = 0,
        *,
        include_rows: bool = True,
        include_processed: bool = False,
        reconnect_for: float | None = None,
    ) -> Iterator[bench_pb2.RunEvent]:
        """Follow a run after a sequence, to its end; otherwise as `evaluate`."""
        return self._follow(None, run_id, after, not include_rows, include_processed, reconnect_for)

    def start(self, spec: Spec, request_id: str | None = None) -> str:
        """Start a run, and return its id without following it."""
        events = self.evaluate(
            spec, request_id=request_id, include_rows=False, reconnect_for=self.timeout
        )
        for event in events:
            if event.HasField("accepted"):
                return event.accepted.run_id
        raise Refused(f"{self.target} took the run and never named it.", code="INTERNAL")

    def get(self, run_id: str) -> bench_pb2.Run:
        """Get a run."""
        request = bench_pb2.GetRunRequest(run_id=run_id)
        return self._call("GetRun", request, bench_pb2.GetRunResponse).run

    def list(
        self,
        *,
        states: Iterable[int] = (),
        labels: Mapping[str, str] | None = None,
        mine: bool = False,
    ) -> Iterator[bench_pb2.Run]:
        """List runs, newest first, without their configuration.

        `mine` asks only for those that were started with the token of this client.
        """
        request = bench_pb2.ListRunsRequest(labels=labels, mine=mine)
        request.states.extend(cast(Any, states))
        for page in self._pages("ListRuns", request, bench_pb2.ListRunsResponse):
            yield from page.runs

    def rows(
        self,
        run_id: str,
        *,
        include_processed: bool = False,
        include_original: bool = False,
        failed_only: bool = False,
        system: str = "",
    ) -> Iterator[bench_pb2.EvalRow]:
        """List the rows of a run, by system and then in dataset order."""
        request = bench_pb2.ListRowsRequest(
            run_id=run_id,
            include_processed=include_processed,
            include_original=include_original,
            failed_only=failed_only,
            system=system,
        )
        for page in self._pages("ListRows", request, bench_pb2.ListRowsResponse):
            yield from page.rows

    def cancel(self, run_id: str) -> bench_pb2.Run:
        """Ask a run to stop; its rows are kept."""
        request = bench_pb2.CancelRunRequest(run_id=run_id)
        return self._call("CancelRun", request, bench_pb2.CancelRunResponse).run

    def resume(self, run_id: str, *, budget_usd: float | None = None) -> bench_pb2.Run:
        """Take a cancelled or failed run up again where it stopped.

        `budget_usd` is the most that it may cost in all, in the place of its budget.
        """
        request = bench_pb2.ResumeRunRequest(run_id=run_id, budget_usd=budget_usd)
        return self._call("ResumeRun", request, bench_pb2.ResumeRunResponse).run

    def explain_wait(self, run_id: str, reason: str) -> bench_pb2.Run:
        """Tell a run in progress why a system that you started for it is away."""
        request = bench_pb2.ExplainWaitRequest(run_id=run_id, reason=reason)
        try:
            return self._call("ExplainWait", request, bench_pb2.ExplainWaitResponse).run
        except Unreachable:
            # A daemon of before has another way.
            old = bench_pb2.ResumeRunRequest(run_id=run_id, waiting_reason=reason)
            return self._call("ResumeRun", old, bench_pb2.ResumeRunResponse).run

    def delete(self, run_id: str) -> None:
        """Delete a finished run with its rows."""
        request = bench_pb2.DeleteRunRequest(run_id=run_id)
        self._call("DeleteRun", request, bench_pb2.DeleteRunResponse)

    def rescore(
        self,
        run_id: str,
        evaluators: Iterable[EvaluatorRef | Mapping[str, Any]] = (),
        *,
        references_upload: str = "",
        labels: Mapping[str, str] | None = None,
        request_id: str | None = None,
        allow_unqualified_judges: bool = False,
        errata_upload: str = "",
        labels_upload: str = "",
    ) -> bench_pb2.Run:
        """Score the stored outputs of a run again, as a new run."""
        fields = {
            "run_id": run_id,
            "evaluators": list(evaluators),
            "references_upload": references_upload,
            "labels": labels,
            "request_id": request_id or str(uuid.uuid4()),
            "allow_unqualified_judges": allow_unqualified_judges,
            "errata_upload": errata_upload,
            "labels_upload": labels_upload,
        }
        request = message_from_dict(bench_pb2.RescoreRequest(), fields)
        return self._call("Rescore", request, bench_pb2.RescoreResponse).run

    def score(
        self,
        evaluator: str,
        original: Mapping[str, Any],
        processed: Mapping[str, Any],
        options: Mapping[str, Any] | None = None,
    ) -> Assessment:
        """Score one pair with an evaluator of the daemon."""
        request = score_request(evaluator, original, processed, options)
        response = self._call(
            "Score", request, evaluator_pb2.ScoreResponse, service="cbench.v1.Evaluator"
        )
        return assessment_of(response)

    def upload(self, examples: Iterable[Mapping[str, Any]]) -> tuple[str, int]:
        """Store examples; return the digest for `DatasetRef.upload`, and how many there are."""
        method = self._channel.stream_unary(
            f"/{BENCH}/UploadExamples",
            request_serializer=bench_pb2.UploadExamplesRequest.SerializeToString,
            response_deserializer=bench_pb2.UploadExamplesResponse.FromString,
        )
        broken: list[Exception] = []
        try:
            response = method(_upload_messages(examples, broken))
        except grpc.RpcError as error:
            # gRPC reports an exception from the examples as its own status.
            if broken:
                raise broken[0] from None
            raise self._error(error, BENCH) from None
        return response.digest, response.example_count

    def components(self) -> bench_pb2.ListComponentsResponse:
        """List what a run may name: datasets, evaluators, metrics and systems."""
        request = bench_pb2.ListComponentsRequest()
        return self._call("ListComponents", request, bench_pb2.ListComponentsResponse)

    def __enter__(self) -> "BenchClient":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _follow(
        self,
        start: Any,
        run_id: str,
        after: int,
        omit_rows: bool,
        include_processed: bool,
        reconnect_for: float | None,
    ) -> Iterator[bench_pb2.RunEvent]:
        def go_on(run_id: str, after: int) -> Any:
            request = bench_pb2.WatchRunRequest(
                run_id=run_id,
                after_sequence=after,
                omit_rows=omit_rows,
                include_processed=include_processed,
            )
            return self._stream("WatchRun", request, bench_pb2.WatchRunResponse)

        def may_wait(error: grpc.RpcError, silence: float) -> None:
            if not self._may_wait(error, silence, reconnect_for):
                raise self._error(error, BENCH) from None

        follower = Follower(start, go_on, self._is_over, may_wait, run_id, after)
        for event in follower.events():
            self._has_answered = True
            yield event

    def _may_wait(self, error: grpc.RpcError, silence: float, limit: float | None) -> bool:
        if self._is_closed or not is_lost(error):
            return False
        if self._daemons.is_another_there():
            return limit is None or silence < limit
        if not self._has_answered:
            if FINDS_NO_SERVER.search(error.details() or ""):
                return False
            limit = min(_FIRST_CONTACT_SECONDS, limit or _FIRST_CONTACT_SECONDS)
        return limit is None or silence < limit

    def _is_over(self, run_id: str, last: int) -> bool:
        method = self._unary(BENCH, "GetRun", bench_pb2.GetRunResponse)
        run = method(bench_pb2.GetRunRequest(run_id=run_id), timeout=self.timeout).run
        return run.state in FINAL_STATES and run.last_sequence <= last


def _spec(spec: Spec) -> bench_pb2.RunSpec:
    if isinstance(spec, bench_pb2.RunSpec):
        return spec
    return message_from_dict(bench_pb2.RunSpec(), spec)


def _upload_messages(
    examples: Iterable[Mapping[str, Any]], broken: "list[Exception]"
) -> Iterator[bench_pb2.UploadExamplesRequest]:
    message, size = bench_pb2.UploadExamplesRequest(), 0
    try:
        for example in examples:
            encoded = message.examples.add()
            convert.example_to_proto(example, encoded)
            size += encoded.ByteSize()
            if size >= _UPLOAD_BYTES:
                yield message
                message, size = bench_pb2.UploadExamplesRequest(), 0
    except Exception as error:
        broken.append(error)
        raise
    if message.examples:
        yield message
