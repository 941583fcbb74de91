"""BenchClient against a small real daemon that loses its connections."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from cbench_client import BenchClient, Refused, Unencodable, Unreachable, row_to_dict
from cbench_client._gen.cbench.v1 import bench_pb2 as pb
from cbench_client._gen.cbench.v1 import bench_pb2_grpc, evaluator_pb2, evaluator_pb2_grpc
from cbench_client.errors import InvalidSpec
from cbench_client.messages.convert import example_from_proto, fields_to_proto
from tests.fixtures.ports import held_port

ROWS = 40
SPEC = {"systems": [{"target": "h:1"}], "datasets": [{"name": "short-qa"}]}


def run(state: int = pb.RUN_STATE_SUCCEEDED) -> pb.Run:
    return pb.Run(run_id="run-1", state=state, last_sequence=ROWS + 2)  # type: ignore[arg-type]


def stored_events() -> list[pb.RunEvent]:
    events = [pb.RunEvent(sequence=1, accepted=run(pb.RUN_STATE_RUNNING))]
    for index in range(ROWS):
        events.append(pb.RunEvent(sequence=index + 2, row=pb.EvalRow(system="s", index=index)))
    events.append(pb.RunEvent(sequence=ROWS + 2, finished=run()))
    return events


class Daemon(bench_pb2_grpc.BenchServicer, evaluator_pb2_grpc.EvaluatorServicer):
    """Serves one stored run; `breaks` says after how many events each stream is lost."""

    def __init__(self) -> None:
        self.breaks: list[int] = []
        self.ends_early: list[int] = []
        self.requests: list[Any] = []
        self.overlap = 0
        # Once set, a stream of ten events goes on only when the server stops.
        self.holds = False
        self._stopped = threading.Event()
        self.state = pb.RUN_STATE_SUCCEEDED
        self.examples: list[dict[str, Any]] = []
        self.message_sizes: list[int] = []
        self._server: grpc.Server | None = None
        self.port = held_port()

    def start(self) -> None:
        self._stopped.clear()
        options = [("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", 128 << 20)]
        self._server = grpc.server(ThreadPoolExecutor(8), options=options)
        bench_pb2_grpc.add_BenchServicer_to_server(self, self._server)
        evaluator_pb2_grpc.add_EvaluatorServicer_to_server(self, self._server)
        self._server.add_insecure_port(self.target)
        self._server.start()

    def stop(self) -> None:
        assert self._server is not None
        stopping = self._server.stop(None)
        self._stopped.set()
        stopping.wait()

    @property
    def target(self) -> str:
        return f"127.0.0.1:{self.port}"

    def _events(self, after: int, context: Any) -> Iterator[list[pb.RunEvent]]:
        limit = self.breaks.pop(0) if self.breaks else None
        end = self.ends_early.pop(0) if self.ends_early else None
        for sent, event in enumerate(stored_events()[max(0, after - self.overlap) :]):
            if sent == limit:
                context.abort(grpc.StatusCode.UNAVAILABLE, "shutting down")
            if sent == end:
                return
            if sent == 10 and self.holds:
                self._stopped.wait()
            progress = pb.RunEvent(progress=pb.Progress(completed_rows=sent))
            yield [event, progress]

    def Evaluate(self, request: Any, context: Any) -> Iterator[pb.EvaluateResponse]:
        self.requests.append(request)
        for events in self._events(0, context):
            yield pb.EvaluateResponse(events=events)

    def WatchRun(self, request: Any, context: Any) -> Iterator[pb.WatchRunResponse]:
        self.requests.append(request)
        if request.run_id != "run-1":
            context.set_trailing_metadata((("cbench-reason", "UNKNOWN_RUN"),))
            context.abort(grpc.StatusCode.NOT_FOUND, f'no run "{request.run_id}"')
        for events in self._events(request.after_sequence, context):
            yield pb.WatchRunResponse(events=events)

    def GetRun(self, request: Any, context: Any) -> pb.GetRunResponse:
        if request.run_id != "run-1":
            context.set_trailing_metadata((("cbench-reason", "UNKNOWN_RUN"),))
            context.abort(grpc.StatusCode.NOT_FOUND, f'no run "{request.run_id}"')
        return pb.GetRunResponse(run=run(self.state))

    def ListRuns(self, request: Any, context: Any) -> pb.ListRunsResponse:
        self.requests.append(request)
        page = int(request.page_token or 0)
        return pb.ListRunsResponse(
            runs=[pb.Run(run_id=f"{page}-{i}") for i in range(2)],
            next_page_token=str(page + 1) if page < 2 else "",
        )

    def ListRows(self, request: Any, context: Any) -> pb.ListRowsResponse:
        self.requests.append(type(request).FromString(request.SerializeToString()))
        page = int(request.page_token or 0)
        rows = [event.row for event in stored_events()[1:-1]]
        return pb.ListRowsResponse(
            rows=rows[page : page + 15],
            next_page_token=str(page + 15) if page + 15 < ROWS else "",
        )

    def CancelRun(self, request: Any, context: Any) -> pb.CancelRunResponse:
        return pb.CancelRunResponse(run=run(pb.RUN_STATE_CANCELLED))

    def ResumeRun(self, request: Any, context: Any) -> pb.ResumeRunResponse:
        return pb.ResumeRunResponse(run=run(pb.RUN_STATE_RUNNING))

    def DeleteRun(self, request: Any, context: Any) -> pb.DeleteRunResponse:
        self.requests.append(request)
        return pb.DeleteRunResponse()

    def Rescore(self, request: Any, context: Any) -> pb.RescoreResponse:
        self.requests.append(request)
        return pb.RescoreResponse(run=pb.Run(run_id="run-2", parent_run_id=request.run_id))

    def UploadExamples(self, requests: Any, context: Any) -> pb.UploadExamplesResponse:
        for request in requests:
            self.message_sizes.append(request.ByteSize())
            self.examples += [example_from_proto(example) for example in request.examples]
        return pb.UploadExamplesResponse(digest="d1", example_count=len(self.examples))

    def ListComponents(self, request: Any, context: Any) -> pb.ListComponentsResponse:
        return pb.ListComponentsResponse(server_version="9")

    def Score(self, request: Any, context: Any) -> evaluator_pb2.ScoreResponse:
        response = evaluator_pb2.ScoreResponse()
        response.scores["f1"] = 0.5
        response.details["options"].map_value.fields.MergeFrom(request.options)
        return response


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    daemon = Daemon()
    daemon.start()
    yield daemon
    daemon.stop()


@pytest.fixture
def client(daemon: Daemon) -> Iterator[BenchClient]:
    with BenchClient(daemon.target) as client:
        yield client


def sequences(events: Iterator[pb.RunEvent]) -> list[int]:
    return [event.sequence for event in events if event.sequence]


ALL = list(range(1, ROWS + 3))


def test_a_run_is_followed_to_its_end(daemon: Daemon, client: BenchClient) -> None:
    events = list(client.evaluate(SPEC))
    assert [event.sequence for event in events if event.sequence] == ALL
    assert events[0].accepted.run_id == "run-1"
    assert any(event.HasField("progress") for event in events)
    [request] = daemon.requests
    assert request.spec.systems[0].target == "h:1"
    assert request.request_id
    assert not request.omit_rows


def test_lost_connections_lose_and_repeat_nothing(daemon: Daemon, client: BenchClient) -> None:
    daemon.breaks = [7, 0, 5, 1]
    daemon.overlap = 3
    assert sequences(client.evaluate(SPEC)) == ALL
    first, *watches = daemon.requests
    assert isinstance(first, pb.EvaluateRequest)
    assert [watch.after_sequence for watch in watches] == [7, 7, 9, 9]


def test_a_start_that_is_lost_is_repeated_as_the_same_request(
    daemon: Daemon, client: BenchClient
) -> None:
    daemon.breaks = [0, 0]
    assert sequences(client.evaluate(SPEC)) == ALL
    assert [type(request) for request in daemon.requests] == [pb.EvaluateRequest] * 3
    assert len({request.request_id for request in daemon.requests}) == 1


def test_a_daemon_that_is_killed_and_returns_is_found_again(
    daemon: Daemon, client: BenchClient
) -> None:
    daemon.holds = True
    events = client.evaluate(SPEC)
    seen = [next(events).sequence]
    daemon.stop()
    daemon.holds = False
    daemon.start()
    assert seen + sequences(events) == ALL
    assert len(daemon.requests) > 1


def test_a_stream_that_ends_before_the_run_is_taken_up_again(
    daemon: Daemon, client: BenchClient
) -> None:
    daemon.ends_early = [4]
    assert sequences(client.watch("run-1")) == ALL


def test_a_finished_run_watched_after_its_end_gives_nothing(client: BenchClient) -> None:
    assert sequences(client.watch("run-1", after=ROWS + 2)) == []
    assert sequences(client.watch("run-1", after=ROWS)) == [ROWS + 1, ROWS + 2]


def test_patience_has_an_end_where_one_is_set(daemon: Daemon, client: BenchClient) -> None:
    daemon.holds = True
    events = client.watch("run-1", reconnect_for=0.3)
    next(events)
    daemon.stop()
    with pytest.raises(Unreachable, match="nothing listens"):
        list(events)


def test_a_run_is_started_without_being_followed(daemon: Daemon, client: BenchClient) -> None:
    daemon.breaks = [0]
    assert client.start(SPEC, request_id="r1") == "run-1"
    assert {request.request_id for request in daemon.requests} == {"r1"}


def test_rows_and_outputs_are_left_out_or_asked_for(daemon: Daemon, client: BenchClient) -> None:
    list(client.watch("run-1", include_rows=False, include_processed=True))
    [request] = daemon.requests
    assert request.omit_rows
    assert request.include_processed


def test_what_the_daemon_declines_is_refused_in_its_words(client: BenchClient) -> None:
    for attempt in (lambda: client.get("nope"), lambda: list(client.watch("nope"))):
        with pytest.raises(Refused, match='no run "nope"') as caught:
            attempt()
        assert (caught.value.code, caught.value.reason) == ("NOT_FOUND", "UNKNOWN_RUN")


def test_lists_go_through_all_their_pages(daemon: Daemon, client: BenchClient) -> None:
    assert [found.run_id for found in client.list()] == ["0-0", "0-1", "1-0", "1-1", "2-0", "2-1"]
    daemon.requests.clear()
    rows = client.rows("run-1", include_processed=True, failed_only=True, system="s")
    assert [row.index for row in rows] == list(range(ROWS))
    assert len(daemon.requests) == 3
    assert all(r.include_processed and r.failed_only and r.system == "s" for r in daemon.requests)


def test_a_run_is_changed_by_name(daemon: Daemon, client: BenchClient) -> None:
    assert client.get("run-1").state == pb.RUN_STATE_SUCCEEDED
    assert client.cancel("run-1").state == pb.RUN_STATE_CANCELLED
    assert client.resume("run-1").state == pb.RUN_STATE_RUNNING
    client.delete("run-1")
    assert daemon.requests == [pb.DeleteRunRequest(run_id="run-1")]
    evaluators = [{"name": "judge", "options": {"model": "m", "k": 3}}]
    assert client.rescore("run-1", evaluators, labels={"a": "b"}).parent_run_id == "run-1"
    assert daemon.requests[-1].evaluators[0].options["k"].int_value == 3
    assert client.components().server_version == "9"


def test_a_pair_is_scored(client: BenchClient) -> None:
    assessment = client.score("f1", {"answer": "a"}, {"response": "b"}, {"stem": True})
    assert assessment.scores == {"f1": 0.5}
    assert assessment.details == {"options": {"stem": True}}


def test_examples_are_uploaded_in_messages_of_about_a_megabyte(
    daemon: Daemon, client: BenchClient
) -> None:
    examples = [{"id": i, "context": "x" * 300_000} for i in range(10)]
    assert client.upload(iter(examples)) == ("d1", 10)
    assert daemon.examples == examples
    assert len(daemon.message_sizes) == 3
    assert max(daemon.message_sizes) < 1_500_000


def test_an_example_that_cannot_be_uploaded_is_named(client: BenchClient) -> None:
    with pytest.raises(Unencodable, match='"context"'):
        client.upload([{"id": 1}, {"id": 2, "context": {1}}])


def test_a_spec_is_read_from_plain_values(daemon: Daemon, client: BenchClient) -> None:
    spec = {
        "systems": [
            {"builtin": "truncate-head", "options": {"ratio": 0.5, "tags": ["a", None]}},
            {"proxy": {"base_url": "http://h", "options": {"temperature": 0}}},
        ],
        "datasets": [{"name": "short-qa", "max_examples": 5, "where": {"kind": "x"}}],
        "row_timeout": 2.5,
        "kind": "memory",
        "labels": {"who": "me"},
        "text_fields": ["context"],
        "threshold": None,
        "repeats": 2,
    }
    client.start(spec)
    sent = daemon.requests[0].spec
    assert sent.systems[0].options["ratio"].double_value == 0.5
    assert sent.systems[0].options["tags"].list_value.values[1].null_value
    assert sent.systems[1].proxy.options["temperature"].int_value == 0
    assert sent.datasets[0].max_examples == 5
    assert sent.datasets[0].where == {"kind": "x"}
    assert sent.row_timeout.ToMilliseconds() == 2500
    assert sent.kind == pb.RUN_KIND_MEMORY
    assert (sent.labels, list(sent.text_fields), sent.repeats) == ({"who": "me"}, ["context"], 2)
    assert not sent.HasField("threshold")
    daemon.requests.clear()
    client.start(sent)
    assert daemon.requests[0].spec == sent


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ({"sistems": []}, r'no field "sistems"\. Did you mean "systems"'),
        ({"systems": [{"target": 5}]}, r'"systems\[0\]\.target" cannot be 5'),
        ({"systems": ["h:1"]}, r'"systems" cannot be .*it is a dict'),
        ({"systems": 5}, '"systems" cannot be 5'),
        ({"text_fields": "context"}, "it is a list"),
        ({"kind": "sideways"}, "RUN_KIND_MEMORY"),
        ({"row_timeout": "soon"}, '"row_timeout" cannot be'),
        (
            {"systems": [{"builtin": "identity", "target": "h:1"}]},
            r'"systems\[0\]" gives both builtin and target; give one\.',
        ),
        ({"row_timeout": float("inf")}, '"row_timeout" cannot be inf'),
        ({"wait_timeout": float("nan")}, '"wait_timeout" cannot be nan'),
    ],
    ids=[
        "unknown",
        "wrong-type",
        "not-a-dict",
        "not-a-list",
        "text",
        "enum",
        "span",
        "two-of-one",
        "inf",
        "nan",
    ],
)
def test_a_spec_that_makes_no_sense_names_its_field(
    client: BenchClient, spec: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(InvalidSpec, match=complaint):
        client.start(spec)


def test_a_row_becomes_a_plain_dict() -> None:
    row = pb.EvalRow(system="s", dataset="d", index=3, input_tokens=9, primary_score="f1")
    row.example_id.number = 2**60
    row.scores["f1"] = 0.25
    row.latency.FromMilliseconds(1500)
    row.usage.total_tokens = 7
    fields_to_proto({"response": "r"}, row.processed)
    row.evaluator_notes.add(evaluator="judge").failure.reason = "DOWN"
    plain = row_to_dict(row)
    assert plain["example_id"] == 2**60
    assert plain["scores"] == {"f1": 0.25}
    assert plain["latency"] == 1.5
    assert plain["usage"] == {"total_tokens": 7}
    assert plain["processed"] == {"response": "r"}
    assert plain["failure"] is None
    assert plain["queue_time"] is None
    assert plain["context_tokens_in"] is None
    assert "original" not in plain
    [note] = plain["evaluator_notes"]
    assert note["failure"]["reason"] == "DOWN"
