"""Traces of runs, as a collector of OTLP gets them and as those who are called hear of them."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cbench_server
from cbench_client import BenchClient
from cbench_client._gen.cbench.v1 import gateway_pb2, gateway_pb2_grpc
from cbench_client.remote.channel import open_channel
from cbench_server.registry import registry
from cbench_server.telemetry.traces import tracer_from_environment
from tests.e2e.following import Followed, follow
from tests.e2e.processes import DaemonProcess, examples, wait_until
from tests.fixtures.collector import Collector, Seen, collecting, collecting_by_http
from tests.fixtures.listeners import listening
from tests.fixtures.model_server import ModelServer

pytest.importorskip("opentelemetry.sdk", reason="needs the extra cbench-server[otel]")


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with collecting() as collector:
        yield collector


@pytest.fixture(scope="module")
def traced(
    collector: Collector, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DaemonProcess]:
    environment = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{collector.address}",
        "OTEL_EXPORTER_OTLP_HEADERS": "x-tenant=referees",
        "OTEL_SERVICE_NAME": "our-referee",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=test",
        "OTEL_BSP_SCHEDULE_DELAY": "50",
    }
    with DaemonProcess(tmp_path_factory.mktemp("home"), env=environment) as daemon:
        yield daemon


async def run(daemon: DaemonProcess, **spec: Any) -> Followed:
    """Evaluate a spec beside the servers of the test."""

    def evaluate() -> Followed:
        with BenchClient(daemon.address) as client:
            return follow(client.evaluate({"anchors": False, "asked_again": 0, **spec}))

    return await asyncio.to_thread(evaluate)


def own(collector: Collector, seen: Followed, name: str, count: int = 1) -> list[Seen]:
    """Wait for the spans of a run, which ends with the span of the run itself."""
    run_id = seen.finished.run_id

    def runs() -> list[Seen]:
        return [span for span in collector.named("run") if span.about["cbench.run_id"] == run_id]

    wait_until(lambda: bool(runs()))
    trace = runs()[0].trace
    wait_until(lambda: len([s for s in collector.named(name) if s.trace == trace]) >= count)
    return [span for span in collector.named(name) if span.trace == trace]


@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "unary"])
async def test_a_run_its_batches_and_its_calls_are_spans(
    traced: DaemonProcess, collector: Collector, streams: bool
) -> None:
    async with listening("system", streams=streams) as system:
        with BenchClient(traced.address) as client:
            digest, _ = await asyncio.to_thread(client.upload, examples(12))
        seen = await run(
            traced,
            systems=[{"target": system.address}],
            datasets=[{"name": "own", "upload": digest}],
        )
    calls = own(collector, seen, "process", 12)
    batches = {span.id: span for span in own(collector, seen, "batch")}
    [whole] = own(collector, seen, "run")
    assert {call.parent for call in calls} == set(batches)
    assert {batch.parent for batch in batches.values()} == {whole.id}
    for call in calls:
        batch = batches[call.parent]
        assert whole.start <= batch.start <= call.start <= call.end <= batch.end <= whole.end
        assert call.about["cbench.system"] == "listener"
    # Who was called heard of the very span, and the row leads to it.
    heard = system.heard["ProcessStream" if streams else "Process"]
    assert sorted(heard) == sorted(call.traceparent for call in calls)
    assert {row.traceparent for row in seen.rows} == set(heard)
    assert {call.about["cbench.ordinal"] for call in calls} == set(range(12))


async def test_evaluators_readers_and_judges_hear_of_the_call_they_are_asked_for(
    traced: DaemonProcess, collector: Collector, server: ModelServer
) -> None:
    server.say("Paris. Score: 1. Yes")
    async with listening("system") as system, listening("evaluator") as evaluator:
        seen = await run(
            traced,
            systems=[{"target": system.address}],
            datasets=[{"name": "mini-qa", "max_examples": 3}],
            reader={"base_url": server.url, "model": "a-reader"},
            evaluators=[
                {"name": "listener", "target": evaluator.address},
                {
                    "name": "llm-judge",
                    "options": {"base_url": server.url, "model": "a-judge"},
                },
            ],
            allow_unqualified_judges=True,
        )
    calls = {span.id for span in own(collector, seen, "process", 3)}
    scored = own(collector, seen, "score", 3)
    assert sorted(evaluator.heard["Score"]) == sorted(span.traceparent for span in scored)
    assert {span.parent for span in scored} == calls
    chats = own(collector, seen, "chat", 6)
    told = [header["traceparent"] for header in server.headers if "traceparent" in header]
    assert sorted(told) == sorted(span.traceparent for span in chats)
    of_rows = [span for span in chats if span.parent in calls]
    assert {span.about["cbench.model"] for span in of_rows} == {"a-reader", "a-judge"}
    # Controls of a judge belong to the run, not to a row.
    [whole] = own(collector, seen, "run")
    assert {span.parent for span in chats} <= calls | {whole.id}


async def test_a_memory_hears_of_each_of_its_calls(
    traced: DaemonProcess, collector: Collector
) -> None:
    async with listening("memory") as memory:
        seen = await run(
            traced,
            kind="memory",
            systems=[{"target": memory.address}],
            datasets=[{"name": "mini-memory", "max_examples": 2}],
        )
    for method in ("Reset", "Ingest", "Query"):
        heard = list(memory.heard[method])
        spans = own(collector, seen, method.lower(), len(heard))
        assert sorted(heard) == sorted(span.traceparent for span in spans)
    assert {row.traceparent for row in seen.rows} <= set(memory.heard["Query"])


async def test_an_attached_system_hears_of_its_call(
    traced: DaemonProcess, collector: Collector
) -> None:
    heard: list[str] = []
    channel = open_channel(traced.address)
    stream = gateway_pb2_grpc.GatewayStub(channel).Attach()
    hello = gateway_pb2.Hello(sdk="test/1")
    hello.systems.add(name="dials-in", version="1")
    await stream.write(gateway_pb2.AttachRequest(hello=hello))

    async def answer() -> None:
        while message := await stream.read():
            reply = gateway_pb2.AttachRequest()
            for call in message.calls:
                heard.append(call.traceparent)
                result = reply.results.add(call_id=call.call_id)
                result.process.fields["response"].string_value = "Paris"
            await stream.write(reply)

    assert (await stream.read()).HasField("welcome")
    answering = asyncio.create_task(answer())
    try:
        seen = await run(
            traced,
            systems=[{"attached": "dials-in"}],
            datasets=[{"name": "mini-qa", "max_examples": 3}],
        )
    finally:
        answering.cancel()
        await channel.close()
    calls = own(collector, seen, "process", 3)
    assert sorted(heard) == sorted(span.traceparent for span in calls)


async def test_a_proxy_hears_of_its_call_and_a_failure_is_told(
    traced: DaemonProcess, collector: Collector, server: ModelServer
) -> None:
    server.answer(400, json.dumps({"error": {"message": "no"}}))
    seen = await run(
        traced,
        systems=[{"proxy": {"base_url": server.url, "model": "m"}, "name": "proxied"}],
        datasets=[{"name": "mini-qa", "max_examples": 1}],
    )
    [call] = own(collector, seen, "process")
    [chat] = own(collector, seen, "chat")
    assert call.failed
    assert chat.failed
    assert chat.parent == call.id
    assert chat.about["error.type"] == seen.rows[0].failure.reason
    assert chat.traceparent in [header.get("traceparent") for header in server.headers]


def test_the_standard_variables_say_who_sends_and_how(
    traced: DaemonProcess, collector: Collector
) -> None:
    with BenchClient(traced.address) as client:
        spec = {"systems": [{"builtin": "identity"}], "datasets": [{"name": "mini-qa"}]}
        follow(client.evaluate({**spec, "anchors": False}))
    collector.wait_for("run")
    about = collector.resources[-1]
    assert about["service.name"] == "our-referee"
    assert about["deployment.environment"] == "test"
    assert about["service.version"]
    assert collector.metadata[-1]["x-tenant"] == "referees"


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_spans_are_sent_by_http_where_the_variables_say_so(
    tmp_path: Path, compression: str
) -> None:
    spec = {"systems": [{"builtin": "identity"}], "datasets": [{"name": "mini-qa"}]}
    with collecting_by_http() as by_http:
        environment = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{by_http.address}",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "OTEL_EXPORTER_OTLP_COMPRESSION": compression,
            "OTEL_EXPORTER_OTLP_HEADERS": "x-tenant=referees",
        }
        with (
            DaemonProcess(tmp_path / "home", env=environment) as daemon,
            BenchClient(daemon.address) as client,
        ):
            seen = follow(client.evaluate({**spec, "anchors": False}))
            # What is not sent yet is sent by a daemon that ends.
            assert daemon.terminate() == 0
        calls = own(by_http, seen, "process", len(seen.rows))
    assert {call.traceparent for call in calls} >= {row.traceparent for row in seen.rows}
    assert by_http.metadata[0]["x-tenant"] == "referees"


def test_a_sampler_that_takes_nothing_sends_nothing_and_links_to_nothing(
    collector: Collector, tmp_path: Path
) -> None:
    environment = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{collector.address}",
        "OTEL_TRACES_SAMPLER": "always_off",
    }
    spec = {"systems": [{"builtin": "identity"}], "datasets": [{"name": "mini-qa"}]}
    with (
        DaemonProcess(tmp_path / "home", env=environment) as daemon,
        BenchClient(daemon.address) as client,
    ):
        seen = follow(client.evaluate({**spec, "anchors": False}))
        daemon.terminate()
    assert {row.traceparent for row in seen.rows} == {""}
    run_ids = [span.about["cbench.run_id"] for span in collector.named("run")]
    assert seen.finished.run_id not in run_ids


_SAMPLER = """
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.trace import TraceState

class Noting(Sampler):
    def __init__(self, argument):
        self.state = TraceState([("lab", argument)])

    def should_sample(self, *_, **__):
        return SamplingResult(Decision.RECORD_AND_SAMPLE, trace_state=self.state)

    def get_description(self):
        return "noting"
"""


@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "unary"])
async def test_what_a_sampler_adds_to_a_trace_reaches_those_who_are_called(
    collector: Collector, server: ModelServer, tmp_path: Path, streams: bool
) -> None:
    named = tmp_path / "packages" / "noting-1.dist-info"
    named.mkdir(parents=True)
    (named / "METADATA").write_text("Metadata-Version: 2.1\nName: noting\nVersion: 1\n")
    points = "[opentelemetry_traces_sampler]\nnoting = noting_sampler:Noting\n"
    (named / "entry_points.txt").write_text(points)
    (tmp_path / "packages" / "noting_sampler.py").write_text(_SAMPLER)
    server.say("Paris")
    environment = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{collector.address}",
        "OTEL_TRACES_SAMPLER": "noting",
        "OTEL_TRACES_SAMPLER_ARG": "p-7",
        "PYTHONPATH": str(tmp_path / "packages"),
    }
    with DaemonProcess(tmp_path / "home", env=environment) as daemon:
        async with listening("system", streams=streams) as system, listening("evaluator") as scorer:
            seen = await run(
                daemon,
                systems=[{"target": system.address}],
                datasets=[{"name": "mini-qa", "max_examples": 2}],
                reader={"base_url": server.url, "model": "a-reader"},
                evaluators=[{"name": "listener", "target": scorer.address}],
            )
    assert len(seen.rows) == 2
    assert (system.states, scorer.states) == ({"lab=p-7"}, {"lab=p-7"})
    told = [each for each in server.headers if "traceparent" in each]
    assert {each.get("tracestate") for each in told} == {"lab=p-7"}


_RUN = """
import sys
from cbench_server.cli import main
code = main(["run", "--builtin", "identity", "--dataset", "mini-qa", "-n", "2"])
print([name for name in sys.modules if name.split(".")[0] == "opentelemetry"])
sys.exit(code)
"""


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        (
            {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"},
            "OTEL_EXPORTER_OTLP_PROTOCOL is 'http/json'",
        ),
        (
            {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "GRPC", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL is 'GRPC'",
        ),
        ({"OTEL_TRACES_EXPORTER": "oltp, none"}, "OTEL_TRACES_EXPORTER is 'oltp'"),
        ({"OTEL_TRACES_EXPORTER": "none"}, ""),
        ({"OTEL_TRACES_EXPORTER": "oltp", "OTEL_SDK_DISABLED": "true"}, ""),
    ],
)
def test_what_variables_ask_for_and_nobody_knows_is_said_once(
    variables: dict[str, str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    asked = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", **variables}
    for name, value in asked.items():
        monkeypatch.setenv(name, value)
    assert tracer_from_environment("1") is None
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == bool(said)
    assert said in "".join(told)


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"OTEL_SERVICE_NAME": "cbench"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"},
    ],
    ids=["nothing-said", "only-a-name", "disabled", "no-exporter"],
)
def test_nothing_of_opentelemetry_is_imported_unless_asked_for(
    environment: dict[str, str], tmp_path: Path, untraced_environment: dict[str, str]
) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _RUN],
        env={**untraced_environment, **environment, "CBENCH_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[-1] == "[]"


def test_evaluate_in_a_script_is_traced_by_the_same_variables(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://{collector.address}")
    before = len(collector.named("run"))
    identity = registry.create_system("identity", {})
    results = [cbench_server.evaluate([identity], "mini-qa", max_examples=3) for _ in range(2)]
    # All is sent when it returns.
    first, second = collector.named("run")[before:]
    assert first.trace != second.trace
    assert first.about["cbench.kind"] == "process"
    for run, result in zip((first, second), results, strict=True):
        calls = {span.traceparent for span in collector.named("process") if span.trace == run.trace}
        assert {row.traceparent for row in result.rows} == calls
        assert len(calls) == 3
