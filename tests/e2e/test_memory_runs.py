"""Memory runs on a daemon, with memory systems in other processes."""

import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cbench_client import BenchClient, Refused
from tests.fixtures import preloaded
from tests.fixtures.ports import held_port

from .following import Followed, follow
from .processes import DaemonProcess, Process, wait_until
from .test_models import serving_model

SYSTEMS = Path(__file__).with_name("memory_systems.py")


def start(behaviour: str, log: Path | str = "", *arguments: str, port: int = 0) -> Process:
    command = [sys.executable, str(SYSTEMS), behaviour, str(port), str(log), *arguments]
    return Process(command)


def conversations(count: int, questions: int = 4) -> list[dict[str, Any]]:
    """Make conversations whose every turn holds the answer to one question."""
    return [
        {
            "id": f"c{number}",
            "turns": [
                {
                    "role": "user",
                    "content": f"in chat number {number} q{number}.{place} is v{number}{place}",
                    "speaker": "Ann",
                    "time": "2024-01-02T03:04",
                    "session": "1",
                    "has_answer": True,
                    "HasAnswer": True,
                    "gold-label": "x",
                }
                for place in range(questions)
            ],
            "qa_pairs": [
                {
                    "question": f"what is q{number}.{place}",
                    "answer": f"v{number}{place}",
                    "type": "even" if place % 2 == 0 else "odd",
                    "asked_at": "2024-02-01T00:00",
                }
                for place in range(questions)
            ],
        }
        for number in range(count)
    ]


def spec_for(
    client: BenchClient, system: dict[str, Any], given: list[dict[str, Any]], **more: Any
) -> dict[str, Any]:
    digest, _ = client.upload(given)
    datasets = [{"name": "given", "upload": digest}]
    return {"kind": "memory", "systems": [system], "datasets": datasets, **more}


def expected_keys(system: str, count: int) -> list[tuple[str, int, int]]:
    return [(system, ordinal, 0) for ordinal in range(count)]


def calls(log: Path, kind: str) -> list[list[str]]:
    words = [line.split() for line in log.read_text().splitlines()]
    return [line[1:] for line in words if line[0] == kind]


def test_each_question_is_a_row_that_says_what_it_took(client: BenchClient, tmp_path: Path) -> None:
    log = tmp_path / "calls"
    with start("notes", log) as system:
        spec = spec_for(client, {"target": system.address}, conversations(3), query_budget=50)
        seen = follow(client.evaluate(spec))
        rows = list(client.rows(seen.finished.run_id, include_processed=True))
    assert (seen.state, seen.failures) == ("SUCCEEDED", {})
    assert sorted(seen.keys) == expected_keys("notes", 12)
    row = rows[5]
    assert row.example_id.text == "c1_1"
    assert row.group == "c1"
    assert row.metadata["qa_type"].string_value == "odd"
    assert row.metadata["lines"].int_value == 4
    assert row.scores["contains"] == 1.0
    assert row.primary_score == "f1"
    assert row.processed["response"].string_value.endswith("q1.1 is v11")
    assert row.ingest_time.ToNanoseconds() > 0
    assert row.stored_bytes == sum(len(turn["content"]) for turn in conversations(2)[1]["turns"])
    assert 0 < row.context_tokens_out < row.context_tokens_in
    assert row.input_tokens == row.context_tokens_out
    assert row.latency.ToNanoseconds() > 0
    metrics = seen.finished.summaries[0].metrics
    assert {"score_even", "score_odd", "token_efficiency", "mean_stored_bytes"} <= set(metrics)


def test_a_system_is_told_the_turns_and_the_question_and_nothing_else(
    client: BenchClient, tmp_path: Path
) -> None:
    log = tmp_path / "calls"
    given = conversations(2)
    for each in given:
        each["id"] += "_abs"
    with start("notes", log) as system:
        follow(client.evaluate(spec_for(client, {"target": system.address}, given)))
    for _, count, names in calls(log, "ingest"):
        assert (count, names) == ("4", "content,role,session,speaker,time")
    assert "_abs" not in log.read_text()
    assert {tuple(words[2:]) for words in calls(log, "query")} == {("None", "2024-02-01T00:00")}


def test_conversations_run_side_by_side_each_in_a_scope_of_its_own(
    client: BenchClient, tmp_path: Path
) -> None:
    log = tmp_path / "calls"
    with start("notes", log, "0.02") as system:
        given = conversations(32, 1)
        spec = spec_for(client, {"target": system.address}, given, timed_rows=0)
        seen = follow(client.evaluate(spec))
        wait_until(lambda: len(calls(log, "reset")) == 64)
    assert [row.scores["contains"] for row in seen.rows] == [1.0] * 32
    held, most = set(), 0
    for kind, scope, *_ in [line.split() for line in log.read_text().splitlines()]:
        held = held | {scope} if kind == "ingest" else held - {scope} if kind == "reset" else held
        most = max(most, len(held))
    # How many is found out on the way, beginning with one.
    assert most > 1
    scopes = Counter(scope for scope, *_ in calls(log, "ingest"))
    assert len(scopes) == 32
    # Before it is used, and when it is no longer needed.
    assert Counter(scope for (scope,) in calls(log, "reset")) == dict.fromkeys(scopes, 2)


def test_a_plain_object_gets_one_conversation_after_another(
    client: BenchClient, tmp_path: Path
) -> None:
    log = tmp_path / "calls"
    with start("bare", log) as system:
        spec = spec_for(client, {"target": system.address}, conversations(3, 2))
        seen = follow(client.evaluate({**spec, "max_concurrency": 8}))
    assert seen.failures == {}
    assert [row.scores["contains"] for row in seen.rows] == [1.0] * 6
    kinds = [line.split()[0] for line in log.read_text().splitlines()]
    # Forgetting what was never there does not reach the object.
    assert [kind for kind in kinds if kind != "reset"] == ["ingest", "query", "query"] * 3


@contextmanager
def attached(daemon: DaemonProcess, behaviour: str, log: Path) -> Iterator[None]:
    where = f"attach:{daemon.address}"
    process = preloaded.Popen([sys.executable, str(SYSTEMS), behaviour, where, str(log)])
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


def test_an_attached_memory_system_takes_part(
    daemon: DaemonProcess, client: BenchClient, tmp_path: Path
) -> None:
    with attached(daemon, "notes", tmp_path / "calls"):
        wait_until(lambda: client.components().memory_systems[3:])
        spec = spec_for(client, {"attached": "notes"}, conversations(4))
        seen = follow(client.evaluate(spec))
    assert sorted(seen.keys) == expected_keys("notes", 16)
    assert {row.scores["contains"] for row in seen.rows} == {1.0}


def test_a_conversation_that_cannot_be_ingested_fails_its_own_rows(client: BenchClient) -> None:
    with start("forgetful") as system:
        spec = spec_for(client, {"target": system.address}, conversations(4), row_timeout=2.0)
        seen = follow(client.evaluate(spec))
    assert seen.state == "SUCCEEDED"
    assert sorted(seen.keys) == expected_keys("forgetful", 16)
    raised = {f"c1_{place}": "EXCEPTION" for place in range(4)}
    hung = {f"c2_{place}": "DEADLINE_EXCEEDED" for place in range(4)}
    assert seen.failures == {**raised, **hung, "c3_1": "EXCEPTION"}
    unasked = {row.example_id.text for row in seen.rows if not row.latency.ToNanoseconds()}
    assert unasked == {*raised, *hung}


@pytest.mark.parametrize("behaviour", ["notes", "bare"])
def test_a_run_killed_and_resumed_ingests_again_and_asks_only_what_is_missing(
    tmp_path: Path, behaviour: str
) -> None:
    port, log = held_port(), tmp_path / "calls"
    delay = ("0.02",) if behaviour == "notes" else ()
    total = 200
    daemon = DaemonProcess(tmp_path / "home", port=port)
    with start(behaviour, log, *delay) as system, BenchClient(daemon.address) as client:
        spec = spec_for(client, {"target": system.address}, conversations(20, 10))
        events = client.evaluate(spec)
        seen = Followed()
        watcher = threading.Thread(target=lambda: [seen.take(event) for event in events])
        watcher.start()
        try:
            for goal in (25, 90):
                wait_until(lambda goal=goal: len(seen.rows) >= goal)
                daemon.kill()
                daemon = DaemonProcess(tmp_path / "home", port=port)
            watcher.join(60)
            assert not watcher.is_alive()
            stored = list(client.rows(seen.finished.run_id))
        finally:
            daemon.kill()
    assert (seen.state, seen.failures) == ("SUCCEEDED", {})
    assert sorted(seen.keys) == expected_keys(behaviour, total)
    assert [row.ordinal for row in stored] == list(range(total))
    assert {row.scores["contains"] for row in stored} == {1.0}
    # What was in flight at a kill is asked again, and nothing else.
    assert total <= len(calls(log, "query")) <= total + 2 * (8 + 8)
    if behaviour == "notes":
        scopes = [scope for scope, *_ in calls(log, "ingest")]
        assert len(scopes) == len(set(scopes)) > 20


def test_a_run_that_is_being_timed_is_handed_back_after_the_call_in_flight(
    tmp_path: Path,
) -> None:
    log = tmp_path / "calls"
    with (
        DaemonProcess(tmp_path / "home", "--drain-seconds", "3600") as daemon,
        start("notes", log, "0.1") as system,
        BenchClient(daemon.address) as client,
    ):
        spec = spec_for(client, {"target": system.address}, conversations(8))
        run_id = client.start({**spec, "timed_rows": 30})
        wait_until(lambda: log.exists() and len(calls(log, "query")) >= 2)
        assert client.get(run_id).progress.completed_rows == 0
        assert daemon.terminate() == 0
        with (
            DaemonProcess(tmp_path / "home") as after,
            BenchClient(after.address) as watching,
        ):
            seen = follow(watching.watch(run_id))
            assert seen.state == "SUCCEEDED"
            assert sorted(seen.keys) == expected_keys("notes", 32)


def test_a_system_that_comes_back_without_its_memory_is_fed_again(
    client: BenchClient, tmp_path: Path
) -> None:
    port, log = held_port(), tmp_path / "calls"
    system = start("notes", log, "0.02", port=port)
    try:
        spec = spec_for(client, {"target": system.address}, conversations(10, 20))
        run_id = client.start(spec)
        wait_until(lambda: client.get(run_id).progress.completed_rows >= 40)
        system.kill()
        system = start("notes", log, "0.02", port=port)
        seen = follow(client.watch(run_id))
    finally:
        system.kill()
    assert (seen.state, seen.failures) == ("SUCCEEDED", {})
    assert sorted(seen.keys) == expected_keys("notes", 200)
    # Asked of an empty memory, it would have said nothing.
    assert {row.scores["contains"] for row in seen.rows} == {1.0}


def test_a_system_with_one_state_is_usable_again_after_a_question_that_took_too_long(
    client: BenchClient,
) -> None:
    with start("slow") as system:
        spec = spec_for(client, {"target": system.address}, conversations(12, 2), row_timeout=0.3)
        seen = follow(client.evaluate(spec))
    assert sorted(seen.keys) == expected_keys("slow", 24)
    assert set(seen.failures.values()) == {"DEADLINE_EXCEEDED"}
    assert "c11_1" not in seen.failures


def test_a_system_that_restarts_between_two_questions_is_fed_again(
    client: BenchClient, tmp_path: Path
) -> None:
    port, log = held_port(), tmp_path / "calls"
    systems = [start("retriever", log, port=port)]

    def restart_once() -> None:
        # While the reader answers, no call to the system is on its way.
        if len(systems) == 1:
            systems[0].kill()
            systems.append(start("retriever", log, port=port))

    with serving_model() as model:
        model.before_answering = restart_once
        try:
            spec = spec_for(client, {"target": systems[0].address}, conversations(1, 3))
            spec |= {"reader": {"base_url": model.url}, "anchors": False}
            spec["timed_rows"] = 0
            seen = follow(client.evaluate(spec))
        finally:
            systems[-1].kill()
    assert (seen.state, seen.failures) == ("SUCCEEDED", {})
    assert sorted(seen.keys) == expected_keys("retriever", 3)
    assert [row.attempts for row in seen.rows] == [1, 1, 1]
    assert len(calls(log, "ingest")) == 2
    assert all("in chat number 0" in str(asked["messages"]) for asked in model.requests)


def test_a_resumed_run_frees_a_system_with_one_state_that_was_fed_again(tmp_path: Path) -> None:
    daemon_port, port = held_port(), held_port()
    daemons = [DaemonProcess(tmp_path / "home", port=daemon_port)]
    systems = [start("retriever", port=port)]

    def go_wrong() -> None:
        if len(systems) == 1:
            systems[0].kill()
            systems.append(start("retriever", port=port))
        elif len(daemons) == 1:
            daemons[0].kill()

    with serving_model() as model, BenchClient(daemons[0].address) as client:
        model.before_answering = go_wrong
        try:
            spec = spec_for(client, {"target": systems[0].address}, conversations(2, 3))
            run_id = client.start({**spec, "reader": {"base_url": model.url}, "anchors": False})
            wait_until(lambda: daemons[0].process.poll() is not None)
            daemons.append(DaemonProcess(tmp_path / "home", port=daemon_port))
            seen = follow(client.watch(run_id))
        finally:
            systems[-1].kill()
            daemons[-1].kill()
    assert (seen.state, seen.failures) == ("SUCCEEDED", {})
    assert sorted(seen.keys) == expected_keys("retriever", 6)


def test_questions_of_other_types_are_left_out_before_conversations_are_counted(
    client: BenchClient,
) -> None:
    given = conversations(5, 2)
    given[0]["qa_pairs"] = given[0]["qa_pairs"][1:]
    renamed = {"builtin": "bm25", "name": "mine"}
    spec = spec_for(client, renamed, given, question_types=["even"])
    spec["datasets"][0]["max_examples"] = 2
    seen = follow(client.evaluate(spec))
    assert sorted(row.example_id.text for row in seen.rows) == ["c1_0", "c2_0"]
    assert {row.system for row in seen.rows} == {"mine"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query_budget": 0}, "query_budget must be at least 1, not 0"),
        ({"expose_reference_fields": True}, "means nothing in a memory run"),
        ({"kind": "process", "query_budget": 5}, "query_budget means nothing in a process run"),
        ({"systems": [{"builtin": "identity"}]}, 'no memory system "identity"'),
        ({"systems": [{"proxy": {"base_url": "http://127.0.0.1:9"}}]}, 'builtin "full-history"'),
        ({"systems": [{"attached": "nobody"}]}, 'no attached memory system "nobody"'),
    ],
    ids=["budget", "references", "kind", "builtin", "proxy", "attached"],
)
def test_what_cannot_be_meant_is_refused_in_one_sentence(
    client: BenchClient, change: dict[str, Any], message: str
) -> None:
    spec = spec_for(client, {"builtin": "bm25"}, conversations(1))
    with pytest.raises(Refused, match=message):
        client.start({**spec, **change})


def test_options_that_a_remote_memory_does_not_declare_are_refused(client: BenchClient) -> None:
    with start("notes") as system:
        ref = {"target": system.address, "options": {"k": 3}}
        with pytest.raises(Refused, match="It takes none"):
            client.start(spec_for(client, ref, conversations(1)))


def test_a_process_without_memory_systems_is_recognised(client: BenchClient) -> None:
    from .processes import start_system

    with start_system("echo") as system, pytest.raises(Refused) as caught:
        client.start(spec_for(client, {"target": system.address}, conversations(1)))
    assert str(caught.value) == (
        f"{system.address} serves no memory system but systems that transform examples: echo. "
        "Evaluate them with: cbench run"
    )


def test_a_dataset_without_conversations_fails_the_run_and_says_what_it_needs(
    client: BenchClient,
) -> None:
    spec = {
        "kind": "memory",
        "systems": [{"builtin": "bm25"}],
        "datasets": [{"name": "mini-qa"}],
    }
    seen = follow(client.evaluate(spec))
    assert seen.state == "FAILED"
    assert 'there are no "turns"' in seen.finished.failure.message
