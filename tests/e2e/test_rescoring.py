"""Answers rescored, and answers taken from earlier runs: no system is asked twice."""

from pathlib import Path
from typing import Any

import pytest

from cbench_client import BenchClient, Refused, row_to_dict

from .following import Followed, follow, run
from .processes import DaemonProcess, examples, start_held, start_system, wait_until


def _calls(log: Path) -> int:
    return len(log.read_text().split())


def _rescored(client: BenchClient, run_id: str, *evaluators: str, **more: Any) -> Followed:
    child = client.rescore(run_id, [{"name": name} for name in evaluators], **more)
    return follow(client.watch(child.run_id))


def test_a_rescored_run_gives_the_same_scores_and_asks_no_system(
    client: BenchClient, tmp_path: Path
) -> None:
    log = tmp_path / "calls"
    with start_system("echo", str(log)) as system:
        first = run(client, {"systems": [{"target": system.address}], "repeats": 2}, examples(30))
    again = _rescored(client, first.finished.run_id)
    assert (again.state, _calls(log)) == ("SUCCEEDED", 60)
    assert again.finished.parent_run_id == first.finished.run_id
    assert again.finished.progress.systems[0].reused_rows == 60
    before, after = (
        {(row.ordinal, row.repeat): row for row in seen.rows} for seen in (first, again)
    )
    assert before.keys() == after.keys()
    for key, row in after.items():
        assert dict(row.scores) == dict(before[key].scores)
        assert (row.latency, row.output_tokens, row.reused) == (
            before[key].latency,
            before[key].output_tokens,
            True,
        )
    stored = list(client.rows(again.finished.run_id, include_processed=True, include_original=True))
    assert row_to_dict(stored[0])["processed"]["response"] == "Paris 0"


def test_a_rescored_run_outlives_its_parent_and_is_rescored_in_its_turn(
    client: BenchClient,
) -> None:
    with start_system("echo") as system:
        first = run(client, {"systems": [{"target": system.address}]}, examples(5))
    again = _rescored(client, first.finished.run_id)
    client.delete(first.finished.run_id)
    third = _rescored(client, again.finished.run_id, "summarization-quality")
    client.delete(again.finished.run_id)
    assert third.state == "SUCCEEDED"
    stored = client.rows(third.finished.run_id, include_processed=True, include_original=True)
    rows = [row_to_dict(row) for row in stored]
    assert [row["original"]["id"] for row in rows] == [row["example_id"] for row in rows]
    assert [row["processed"]["response"] for row in rows] == [f"Paris {n}" for n in range(5)]


def test_other_evaluators_replace_those_of_the_run(client: BenchClient) -> None:
    with start_system("echo") as system:
        first = run(client, {"systems": [{"target": system.address}]}, examples(5))
    again = _rescored(client, first.finished.run_id, "summarization-quality")
    assert again.state == "SUCCEEDED"
    assert all("rouge_l_f1" in row.scores and "f1" not in row.scores for row in again.rows)
    assert {row.primary_score for row in again.rows} == {"rouge_l_f1"}
    assert [each["name"] for each in _evaluators(again)] == ["summarization-quality"]


def _evaluators(seen: Followed) -> list[dict[str, Any]]:
    from cbench_client.messages import convert

    config = convert.fields_from_proto(seen.finished.config)
    evaluators: list[dict[str, Any]] = config["datasets"][0]["evaluators"]
    return evaluators


def test_corrected_references_change_the_scores_of_their_examples_only(
    client: BenchClient,
) -> None:
    with start_system("echo") as system:
        first = run(client, {"systems": [{"target": system.address}]}, examples(4))
    digest, _ = client.upload([{"id": "e2", "answer": "Rome", "context": "Rome."}])
    again = _rescored(client, first.finished.run_id, references_upload=digest)
    scores = {row.example_id.text: row.scores["f1"] for row in again.rows}
    assert scores == {
        "e0": pytest.approx(2 / 3),
        "e1": pytest.approx(2 / 3),
        "e2": 0.0,
        "e3": pytest.approx(2 / 3),
    }
    originals = list(client.rows(again.finished.run_id, include_original=True))
    assert [row_to_dict(row)["original"]["answer"] for row in originals] == [
        "Paris",
        "Paris",
        "Rome",
        "Paris",
    ]


def test_references_that_fit_no_example_end_the_run_with_the_reason(client: BenchClient) -> None:
    with start_system("echo") as system:
        first = run(client, {"systems": [{"target": system.address}]}, examples(3))
    digest, _ = client.upload([{"id": 2, "answer": "Rome", "context": "Rome."}])
    again = _rescored(client, first.finished.run_id, references_upload=digest)
    assert again.state == "FAILED"
    assert 'An id keeps its type: 1 and "1" differ' in again.finished.failure.message
    client.resume(again.finished.run_id)
    assert follow(client.watch(again.finished.run_id)).state == "FAILED"


def test_a_failed_row_stays_failed_when_it_is_scored_anew(client: BenchClient) -> None:
    with start_system("unreliable") as system:
        first = run(client, {"systems": [{"target": system.address}]}, examples(25)[8:])
    assert set(first.failures) == {"e13", "e23"}
    again = _rescored(client, first.finished.run_id)
    assert again.failures == first.failures
    assert len(again.rows) == 17


def test_a_run_in_progress_cannot_be_scored_anew(client: BenchClient, tmp_path: Path) -> None:
    with start_held(tmp_path / "gate", 80) as system:
        digest, _ = client.upload(examples(400))
        spec = {
            "systems": [{"target": system.address}],
            "datasets": [{"name": "given", "upload": digest}],
        }
        run_id = client.start(spec)
        with pytest.raises(Refused, match="wait until it is over"):
            client.rescore(run_id)
        client.cancel(run_id)


def test_a_part_of_a_run_is_scored_anew_as_far_as_it_went(
    client: BenchClient, tmp_path: Path
) -> None:
    with start_held(tmp_path / "gate", 80) as system:
        digest, _ = client.upload(examples(400))
        spec = {
            "systems": [{"target": system.address}],
            "datasets": [{"name": "given", "upload": digest}],
        }
        run_id = client.start(spec)
        wait_until(lambda: client.get(run_id).progress.completed_rows >= 20)
        client.cancel(run_id)
        done = wait_until(lambda: (run := client.get(run_id)).HasField("end_time") and run)
    again = _rescored(client, run_id)
    assert again.state == "SUCCEEDED"
    assert len(again.rows) == done.progress.completed_rows < 400


def test_scoring_anew_goes_on_where_a_killed_daemon_left_it(tmp_path: Path) -> None:
    home, rows = tmp_path / "home", 300
    with DaemonProcess(home) as daemon, BenchClient(daemon.address) as client:
        with start_system("echo") as system:
            first = run(client, {"systems": [{"target": system.address}]}, examples(rows))
        child = client.rescore(first.finished.run_id)
        daemon.kill()
    with DaemonProcess(home) as daemon, BenchClient(daemon.address) as client:
        again = follow(client.watch(child.run_id))
    assert again.state == "SUCCEEDED"
    assert sorted(again.keys) == [("echo", ordinal, 0) for ordinal in range(rows)]


def test_reuse_asks_only_what_was_not_answered_before(client: BenchClient, tmp_path: Path) -> None:
    log = tmp_path / "calls"
    with start_system("echo", str(log)) as system:
        spec = {"systems": [{"target": system.address}], "reuse": True, "asked_again": 0}
        first = run(client, spec, examples(20))
        # Other places, other neighbours: the content decides.
        second = run(client, spec, [*reversed(examples(30))])
    assert _calls(log) == 30
    assert first.finished.progress.systems[0].reused_rows == 0
    assert second.finished.progress.systems[0].reused_rows == 20
    by_id = {row.example_id.text: row for row in second.rows}
    assert all(by_id[f"e{number}"].reused == (number < 20) for number in range(30))
    assert all(row.scores["f1"] == pytest.approx(2 / 3) for row in second.rows)


@pytest.mark.parametrize(
    "change",
    [
        {"systems": [{"options": {"ratio": 0.5}}]},
        {"expose_reference_fields": True},
        {"tokenizer": "o200k_base"},
    ],
    ids=["options", "references", "tokenizer"],
)
def test_what_an_answer_depends_on_is_asked_again_when_it_changes(
    client: BenchClient, tmp_path: Path, change: dict[str, Any]
) -> None:
    log = tmp_path / "calls"
    with start_system("echo", str(log)) as system:
        spec: dict[str, Any] = {"systems": [{"target": system.address}], "reuse": True}
        run(client, spec, examples(5))
        other = {**spec, **change}
        other["systems"] = [{**other["systems"][0], "target": system.address}]
        run(client, other, examples(5))
    assert _calls(log) == 10


def test_a_system_without_a_version_is_always_asked(client: BenchClient) -> None:
    with start_system("shortener") as system:
        spec = {"systems": [{"target": system.address}], "reuse": True}
        for _ in range(2):
            seen = run(client, spec, examples(5))
            assert seen.finished.progress.systems[0].reused_rows == 0


def test_what_failed_before_is_tried_again(client: BenchClient) -> None:
    with start_system("unreliable") as system:
        spec = {"systems": [{"target": system.address}], "reuse": True}
        first = run(client, spec, examples(25)[8:])
        again = run(client, spec, examples(25)[8:])
    assert set(again.failures) == set(first.failures) == {"e13", "e23"}
    assert {row.example_id.text for row in again.rows if not row.reused} == {"e13", "e23"}


def test_the_scores_of_an_evaluator_elsewhere_count_where_it_alone_scores(
    client: BenchClient,
) -> None:
    with start_system("echo") as system, start_system("word-count") as evaluator:
        first = run(client, {"systems": [{"target": system.address}]}, examples(3))
        spec = {"systems": [{"target": system.address}], "replace_evaluators": True}
        alone = run(client, {**spec, "evaluators": [{"target": evaluator.address}]}, examples(3))
    assert {row.primary_score for row in first.rows} == {"f1"}
    assert {row.primary_score for row in alone.rows} == {"word_count"}
    assert alone.finished.summaries[0].metrics["num_scored"] == 3
