"""Junk from clients, systems, evaluators, attachments and endpoints costs whoever sends it."""

import importlib
import json
import os
import random
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import Any

import grpc
import pytest

from cbench_client import BenchClient
from cbench_client._gen.cbench.v1 import gateway_pb2
from tests.e2e.following import Followed, follow, run
from tests.e2e.processes import DaemonProcess, Process, examples, start_system
from tests.fixtures import preloaded

from .junk import junk
from .test_requests import BUILTIN

JUNK = Path(__file__).with_name("junk.py")
SCORERS = Path(__file__).with_name("odd_scorers.py")
MODULES = ("bench", "evaluator", "gateway")


def served(what: str, chance: random.Random) -> Process:
    return Process([sys.executable, str(JUNK), what, str(chance.random())])


def memory_of(daemon: DaemonProcess) -> int:
    status = Path(f"/proc/{daemon.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) >> 10


def is_sound(client: BenchClient) -> None:
    """Check that the daemon still does what it is for."""
    assert follow(client.evaluate(BUILTIN)).state == "SUCCEEDED"


@pytest.mark.parametrize("count", [150, pytest.param(4000, marks=pytest.mark.faults)])
def test_requests_that_make_no_sense_are_refused_and_break_nothing(
    daemon: DaemonProcess, client: BenchClient, chance: random.Random, count: int
) -> None:
    methods = [
        (f"/{service.full_name}/{method.name}", method)
        for module in MODULES
        for service in importlib.import_module(
            f"cbench_client._gen.cbench.v1.{module}_pb2"
        ).DESCRIPTOR.services_by_name.values()
        for method in service.methods
    ]
    assert len(methods) >= 15
    codes = set()
    with grpc.insecure_channel(daemon.address) as channel:
        for number in range(count):
            path, method = methods[number % len(methods)]
            message = method.input_type._concrete_class()
            sent = [junk(chance, message) for _ in range(chance.randint(1, 3))]
            try:
                # Runs that are accepted are not followed to their end.
                list(channel.stream_stream(path)(iter(sent), timeout=0.5))
            except grpc.RpcError as error:
                codes.add(error.code())
    assert grpc.StatusCode.INVALID_ARGUMENT in codes
    assert grpc.StatusCode.INTERNAL not in codes, [
        line for line in daemon.errors if "Trace" in line
    ]
    is_sound(client)


@pytest.mark.parametrize("rows", [60, pytest.param(1000, marks=pytest.mark.faults)])
def test_a_system_that_sends_junk_harms_its_own_rows_only(
    client: BenchClient, chance: random.Random, rows: int
) -> None:
    with served("system", chance) as system:
        spec = {"systems": [{"target": system.address}], "row_timeout": 10.0, "timed_rows": 0}
        seen = run(client, {**spec, "asked_again": 0}, examples(rows))
    assert (seen.state, len(seen.rows)) == ("SUCCEEDED", rows)
    assert {name for name in seen.failures if int(name[1:]) % 5 != 3} == set()
    # All that was taken can be read, and the others' answers are their own.
    for row in client.rows(seen.finished.run_id, include_processed=True):
        if row.ordinal % 5 != 3:
            assert row.processed["response"].string_value == f"e{row.ordinal}"
    assert follow(client.watch(seen.finished.run_id)).keys == seen.keys


@pytest.mark.parametrize("rows", [40, pytest.param(600, marks=pytest.mark.faults)])
def test_an_evaluator_that_sends_junk_is_noted_on_its_own_rows_only(
    client: BenchClient, chance: random.Random, rows: int
) -> None:
    with served("evaluator", chance) as evaluator:
        evaluators = [{"name": "junk", "target": evaluator.address}]
        spec = {"systems": [{"builtin": "identity"}], "evaluators": evaluators}
        seen = run(client, spec, examples(rows))
    assert (seen.state, seen.failures, len(seen.rows)) == ("SUCCEEDED", {}, rows)
    for row in seen.rows:
        if row.ordinal % 5 != 3:
            assert row.scores["fine"] == 1.0


@pytest.mark.parametrize("rows", [20, pytest.param(200, marks=pytest.mark.faults)])
def test_an_endpoint_that_sends_junk_harms_its_own_rows_only(
    client: BenchClient, chance: random.Random, rows: int
) -> None:
    with served("model", chance) as model:
        endpoint = {"base_url": f"http://{model.address}", "model": "m"}
        spec = {"systems": [{"proxy": endpoint, "name": "m"}], "timed_rows": 0, "asked_again": 0}
        seen = run(client, {**spec, "row_timeout": 12.0}, examples(rows))
    assert (seen.state, len(seen.rows)) == ("SUCCEEDED", rows)
    # Those whose question has "Paris 3" in it, such as e3 and e37.
    assert {name for name in seen.failures if not name.startswith("e3")} == set()


def test_attachments_that_send_junk_are_refused_and_harm_nobody(
    daemon: DaemonProcess, client: BenchClient, chance: random.Random
) -> None:
    hello = gateway_pb2.AttachRequest()
    hello.hello.systems.add(name="attached")
    result = gateway_pb2.AttachRequest()
    result.results.add(call_id="none").process.SetInParent()
    codes = set()
    with grpc.insecure_channel(daemon.address) as channel:
        for _ in range(40):
            sent = [hello.SerializeToString(), *(junk(chance, result) for _ in range(4))]
            if chance.random() < 0.3:
                sent[0] = junk(chance, hello)
            try:
                list(channel.stream_stream("/cbench.v1.Gateway/Attach")(iter(sent), timeout=0.3))
            except grpc.RpcError as error:
                codes.add(error.code())
    assert grpc.StatusCode.INTERNAL not in codes
    is_sound(client)


def test_an_answer_over_the_limit_fails_its_row_and_memory_stays_bounded(tmp_path: Path) -> None:
    with (
        DaemonProcess(tmp_path / "home") as daemon,
        BenchClient(daemon.address) as client,
        Process([sys.executable, str(SCORERS), "large"]) as large,
    ):
        before = memory_of(daemon)
        spec = {"systems": [{"target": large.address}], "timed_rows": 0, "asked_again": 0}
        seen = run(client, spec, examples(8))
        assert memory_of(daemon) - before < 700
    assert (seen.state, len(seen.rows)) == ("SUCCEEDED", 8)
    assert seen.failures == {"e3": "MESSAGE_TOO_LARGE"}


def test_odd_scores_are_kept_exactly_or_refused_with_a_note(
    daemon: DaemonProcess, client: BenchClient
) -> None:
    with Process([sys.executable, str(SCORERS), "scores"]) as scorer:
        spec = {
            "systems": [{"builtin": "identity"}],
            "evaluators": [{"name": "odd", "target": scorer.address}],
            "score_field": "odd",
        }
        seen = run(client, spec, examples(7))
    assert (seen.state, len(seen.rows)) == ("SUCCEEDED", 7)
    scores = {row.example_id.text: dict(row.scores).get("odd") for row in seen.rows}
    assert [scores[f"e{n}"] for n in range(3)] == [None, None, None]
    assert (str(scores["e3"]), scores["e4"]) == ("-0.0", 5e-324)
    assert [scores["e5"], scores["e6"]] == [1.7e308, 1.7e308]
    metrics = seen.finished.summaries[0].metrics
    assert metrics["num_scored:odd"] == 4
    exported = exported_rows(daemon, seen)
    assert len(exported) == 7


def exported_rows(daemon: DaemonProcess, seen: Followed) -> list[Any]:
    """Export a run as JSON lines, and read them as strictly as JSON is meant."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    done = preloaded.run(
        [preloaded.CBENCH, "export", seen.finished.run_id, "--format", "jsonl"],
        env={**os.environ, "CBENCH_HOME": str(daemon.home)},
        stdout=subprocess.PIPE,
        check=True,
    )
    lines = done.stdout.decode().splitlines()
    return [json.loads(line, parse_constant=refuse) for line in lines]


def test_odd_texts_come_back_as_they_were_sent_or_cost_their_row(
    daemon: DaemonProcess, client: BenchClient
) -> None:
    odd = [
        "nul \0 nul",
        "\u202e right to left",
        "e\u0301 and é",
        "\U0001f600",
        "\ufffe",
        "\r\n\t\x1b",
    ]
    data = [{"id": f"t{n}", "context": text, "question": text} for n, text in enumerate(odd)]
    with start_system("quotes") as system:
        seen = run(client, {"systems": [{"target": system.address}], "timed_rows": 0}, data)
    assert (seen.state, seen.failures) == ("SUCCEEDED", {})
    stored = client.rows(seen.finished.run_id, include_processed=True)
    assert [row.processed["response"].string_value for row in stored] == [
        f"<{text}>" for text in odd
    ]
    assert len(exported_rows(daemon, seen)) == len(odd)


@pytest.mark.parametrize(
    "ids",
    [
        ("same", "same"),
        (unicodedata.normalize("NFC", "é"), unicodedata.normalize("NFD", "é")),
    ],
)
def test_ids_that_look_alike_are_refused_before_any_call(
    client: BenchClient, tmp_path: Path, ids: tuple[str, str]
) -> None:
    log = tmp_path / "calls"
    with start_system("echo", str(log)) as system:
        data = [{**example, "id": each} for example, each in zip(examples(2), ids, strict=True)]
        seen = run(client, {"systems": [{"target": system.address}]}, data)
    assert seen.state == "FAILED"
    assert seen.finished.failure.reason == "BAD_DATASET"
    assert log.read_text() == ""


@pytest.mark.parametrize("how", [{}, {"shuffle": True}, {"where": {"answer": "Paris"}}])
def test_ids_that_are_the_same_far_apart_are_refused_before_any_call(
    client: BenchClient, tmp_path: Path, how: dict[str, Any]
) -> None:
    log = tmp_path / "calls"
    data = examples(6000)
    data[-1]["id"] = "e0"
    digest, _ = client.upload(data)
    with start_system("echo", str(log)) as system:
        given = {"name": "given", "upload": digest, **how}
        spec = {"systems": [{"target": system.address}], "datasets": [given], "timed_rows": 0}
        seen = follow(client.evaluate(spec))
    assert (seen.state, seen.finished.failure.reason) == ("FAILED", "BAD_DATASET")
    assert '"e0"' in seen.finished.failure.message
    assert log.read_text() == ""


def test_what_is_cut_off_by_a_limit_is_not_looked_at(client: BenchClient) -> None:
    data = examples(60)
    data[-1]["id"] = "e0"
    digest, _ = client.upload(data)
    with start_system("echo") as system:
        given = {"name": "given", "upload": digest, "max_examples": 59}
        seen = follow(
            client.evaluate({"systems": [{"target": system.address}], "datasets": [given]})
        )
    assert (seen.state, len(seen.keys)) == ("SUCCEEDED", 59)
