"""What a run does, seen from a client of a real daemon."""

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from cbench_client import BenchClient, Refused, RemoteEvaluator, Unreachable, row_to_dict
from cbench_server.evaluators import EVALUATORS
from tests.fixtures.ports import held_port

from .following import follow, run
from .processes import DaemonProcess, examples, start_held, start_system, wait_until


def test_rows_are_scored_stored_and_summarised(client: BenchClient) -> None:
    with start_system("echo") as system:
        seen = run(client, {"systems": [{"target": system.address}]}, examples(40))
    assert seen.state == "SUCCEEDED"
    assert sorted(seen.keys) == [("echo", ordinal, 0) for ordinal in range(40)]
    summary = seen.finished.summaries[0]
    assert summary.metrics["mean_score"] == pytest.approx(2 / 3)
    assert summary.metrics["num_scored"] == 40
    stored = list(client.rows(seen.finished.run_id, include_processed=True, include_original=True))
    assert [row.index for row in stored] == list(range(40))
    first = row_to_dict(stored[0])
    assert first["example_id"] == "e0"
    assert first["processed"]["response"] == "Paris 0"
    assert first["original"]["answer"] == "Paris"


def test_an_embedded_dataset_and_built_in_controls_need_no_other_process(
    client: BenchClient,
) -> None:
    spec = {
        "systems": [
            {"builtin": "identity"},
            {"builtin": "truncate-tail", "options": {"ratio": 0.3}},
        ],
        "datasets": [{"name": "long-notes", "max_examples": 30}],
    }
    seen = follow(client.evaluate(spec))
    assert seen.state == "SUCCEEDED"
    identity, truncated = seen.finished.summaries
    assert identity.metrics["mean_score"] == 1.0
    assert identity.metrics["context_compression"] == 0.0
    assert 0.0 < truncated.metrics["mean_score"] < 1.0
    assert 0.5 < truncated.metrics["context_compression"] < 0.9
    assert {row.primary_score for row in seen.rows} == {"f1"}
    assert all(row.context_only and "answer_retained" in row.scores for row in seen.rows)


def test_one_process_may_be_asked_under_two_names_but_not_under_one(client: BenchClient) -> None:
    with start_system("echo") as system:
        twice = [{"target": system.address, "name": name} for name in ("a", "b")]
        seen = run(client, {"systems": twice}, examples(10))
        assert {row.system for row in seen.rows} == {"a", "b"}
        same = [{"target": system.address}, {"target": system.address}]
        with pytest.raises(Refused, match='2 systems are named "echo"'):
            run(client, {"systems": same}, examples(10))


def test_reference_fields_stay_home_unless_the_run_exposes_them(client: BenchClient) -> None:
    with start_system("spy") as system:
        spec = {"systems": [{"target": system.address}]}
        blind = run(client, spec, examples(1))
        open_eyed = run(client, {**spec, "expose_reference_fields": True}, examples(1))
    seen = [
        next(iter(client.rows(each.finished.run_id, include_processed=True)))
        for each in (blind, open_eyed)
    ]
    texts = [row.processed["response"].string_value for row in seen]
    assert texts == ["context dataset id question", "answer context dataset id question"]


def test_repeats_are_rows_of_their_own(client: BenchClient) -> None:
    with start_system("echo") as system:
        seen = run(client, {"systems": [{"target": system.address}], "repeats": 3}, examples(5))
    assert sorted(seen.keys) == [("echo", i, repeat) for i in range(5) for repeat in range(3)]


def test_ids_keep_their_type(client: BenchClient) -> None:
    given = [{"id": 1, "context": "a"}, {"id": "1", "context": "b"}, {"context": "c"}]
    spec = {"systems": [{"builtin": "identity"}]}
    seen = run(client, spec, given)
    ids = [row_to_dict(row)["example_id"] for row in client.rows(seen.finished.run_id)]
    assert ids == [1, "1", 2]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([{"id": 1, "context": "a"}, {"id": 1, "context": "b"}], "positions 0 and 1"),
        ([{"id": 1, "context": "a"}, {"id": 2}], '"context" is missing'),
    ],
    ids=["duplicate-id", "no-context"],
)
def test_a_bad_example_fails_the_run_by_its_position(
    client: BenchClient, given: list[dict[str, object]], said: str
) -> None:
    seen = run(client, {"systems": [{"builtin": "identity"}]}, given)
    assert seen.state == "FAILED"
    assert said in seen.finished.failure.message
    assert seen.finished.failure.field == "spec.datasets[0]"


def test_a_failure_budget_ends_the_run_and_keeps_its_rows(client: BenchClient) -> None:
    with start_system("unreliable") as system:
        spec = {
            "systems": [{"target": system.address}],
            "max_failures": "1",
            "row_timeout": 1.0,
            "max_concurrency": 4,
        }
        seen = run(client, spec, examples(200))
    assert seen.state == "FAILED"
    failure = seen.finished.failure
    assert (failure.reason, failure.field) == ("FAILURE_BUDGET_SPENT", "spec.max_failures")
    assert 0 < len(seen.rows) < 200
    assert len(list(client.rows(seen.finished.run_id))) == len(seen.rows)


def test_the_same_request_follows_the_first_run(client: BenchClient) -> None:
    spec = {"systems": [{"builtin": "identity"}], "datasets": [{"name": "mini-qa"}]}
    first = client.start(spec, request_id="once")
    assert client.start(spec, request_id="once") == first
    with pytest.raises(Refused) as refused:
        client.start({**spec, "repeats": 2}, request_id="once")
    assert refused.value.code == "ALREADY_EXISTS"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"datasets": [{"name": "mini-q"}]}, 'did you mean "mini-qa"'),
        ({"systems": [{"builtin": "identiti"}]}, 'did you mean "identity"'),
        ({"evaluators": [{"name": "answer-qualty"}]}, 'did you mean "answer-quality"'),
        ({"metrics": [{"name": "mean-scor"}]}, 'did you mean "mean-score"'),
        ({"tokenizer": "cl100k"}, 'did you mean "cl100k_base"'),
        ({"systems": []}, "names no system"),
        ({"datasets": []}, "names no dataset"),
        ({"repeats": 0}, "repeats must be at least 1"),
        ({"max_failures": "lots"}, "lots"),
        ({"datasets": [{"name": "mini-qa", "config": "x"}]}, "no configs"),
        ({"systems": [{"builtin": "truncate-tail", "options": {"ratio": 7}}]}, "ratio"),
        ({"systems": [{"target": "169.254.169.254:80"}]}, "link-local"),
        ({"datasets": [{"name": "x", "upload": "../../etc/passwd"}]}, "no upload"),
    ],
)
def test_what_cannot_be_run_is_refused_by_name(
    client: BenchClient, change: dict[str, object], said: str
) -> None:
    spec = {"systems": [{"builtin": "identity"}], "datasets": [{"name": "mini-qa"}], **change}
    with pytest.raises(Refused) as refused:
        follow(client.evaluate(spec))
    assert said in str(refused.value)


def test_an_unreachable_system_is_refused_at_once(client: BenchClient) -> None:
    spec = {"systems": [{"target": f"127.0.0.1:{held_port()}"}], "datasets": [{"name": "mini-qa"}]}
    with pytest.raises(Refused, match="127.0.0.1") as refused:
        follow(client.evaluate(spec))
    assert refused.value.reason == "SYSTEM_UNREACHABLE"


def test_runs_are_listed_newest_first_and_deleted(client: BenchClient) -> None:
    spec = {"systems": [{"builtin": "identity"}], "datasets": [{"name": "mini-qa"}]}
    runs = [
        follow(client.evaluate({**spec, "labels": {"n": str(n)}})).finished.run_id for n in range(3)
    ]
    assert [run.run_id for run in client.list()] == runs[::-1]
    assert [run.run_id for run in client.list(labels={"n": "1"})] == [runs[1]]
    client.delete(runs[1])
    assert [run.run_id for run in client.list()] == [runs[2], runs[0]]
    with pytest.raises(Refused) as refused:
        client.get(runs[1])
    assert refused.value.reason == "UNKNOWN_RUN"


def test_a_cancelled_run_keeps_its_rows_and_resumes_where_it_stopped(
    client: BenchClient, tmp_path: Path
) -> None:
    log, gate = tmp_path / "calls", tmp_path / "gate"
    with start_held(gate, 80, log=str(log)) as system:
        digest, _ = client.upload(examples(300))
        spec = {
            "systems": [{"target": system.address}],
            "datasets": [{"name": "given", "upload": digest}],
        }
        run_id = client.start(spec)
        wait_until(lambda: client.get(run_id).progress.completed_rows >= 32)
        cancelled = client.cancel(run_id)
        kept = cancelled.progress.completed_rows
        assert 32 <= kept < 300
        gate.touch()
        client.resume(run_id)
        seen = follow(client.watch(run_id))
    assert seen.state == "SUCCEEDED"
    assert sorted(seen.keys) == [("echo", ordinal, 0) for ordinal in range(300)]
    # What was in flight or not yet stored when it was cancelled, and no more, is asked again:
    # 16 calls are in flight, and 20 answers may wait to be stored (docs/architecture.md).
    assert len(log.read_text().split()) - 300 <= 16 + 20


def test_every_registered_evaluator_scores_over_the_wire_as_in_process(
    daemon: DaemonProcess, client: BenchClient
) -> None:
    original = {"id": 1, "context": "The capital is Paris.", "answer": "Paris"}
    pairs = [{**original, "response": "It is Paris."}, {**original, "context": "Paris"}]
    known = {evaluator.name for evaluator in client.components().evaluators}
    assert known >= {kind.name for kind in EVALUATORS.values()}
    for name, kind in EVALUATORS.items():
        if getattr(kind, "asks_model", False):
            continue  # tests/evaluators/test_judges_in_daemon.py has a model to ask.
        for processed in pairs:
            expected = kind().score(original, processed)
            assert client.score(name, original, processed).scores == expected
            remote = RemoteEvaluator(daemon.address, name)
            assert remote.score(original, processed) == expected


def test_a_daemon_that_is_not_there_is_said_so() -> None:
    with pytest.raises(Unreachable, match="127.0.0.1"):
        follow(BenchClient(f"127.0.0.1:{held_port()}").evaluate({}))


def test_what_a_system_passed_on_is_stored_once_and_comes_back_whole(
    daemon: DaemonProcess, client: BenchClient
) -> None:
    given = [
        {"id": number, "context": f"{number} " + os.urandom(50_000).hex(), "question": "q"}
        for number in range(20)
    ]
    with start_system("echo") as system:
        seen = run(client, {"systems": [{"target": system.address}]}, given)
    run_id = seen.finished.run_id
    rows = list(client.rows(run_id, include_processed=True))
    assert [row.processed["context"].string_value for row in rows] == [e["context"] for e in given]
    watched = follow(client.watch(run_id, include_processed=True)).rows
    assert {row.index: row.processed["context"].string_value for row in watched} == {
        number: example["context"] for number, example in enumerate(given)
    }
    with closing(sqlite3.connect(f"file:{daemon.home}/cbench.db?mode=ro", uri=True)) as store:
        (kept,) = store.execute("SELECT max(length(body)) FROM events").fetchone()
    assert kept < 1000


def test_the_connections_of_a_run_end_with_it(daemon: DaemonProcess, client: BenchClient) -> None:
    def sockets() -> int:
        found = 0
        for link in Path(f"/proc/{daemon.pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # It was closed meanwhile.
                found += "socket" in os.readlink(link)
        return found

    with start_system("echo") as system:
        spec = {"systems": [{"target": system.address}]}
        run(client, spec, examples(3))
        before = sockets()
        for _ in range(12):
            run(client, spec, examples(3))
        # What is only left to a full garbage collection may stay for an hour.
        wait_until(lambda: sockets() <= before + 2)
