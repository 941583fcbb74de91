"""Systems that misbehave cost their own rows and nobody else's."""

import pytest

from cbench_client import Attachment, BenchClient

from .following import follow, run
from .processes import DaemonProcess, examples, start_system, wait_until


def test_failures_are_rows_with_reasons_and_other_rows_are_unaffected(client: BenchClient) -> None:
    with start_system("unreliable") as system:
        # Two calls take all of it; to the others it must be long on the busiest machine.
        spec = {"systems": [{"target": system.address}], "row_timeout": 8.0}
        seen = run(client, spec, examples(100))
    assert seen.state == "SUCCEEDED"
    assert len(seen.rows) == 100
    assert seen.failures == {
        "e7": "DEADLINE_EXCEEDED",
        "e57": "DEADLINE_EXCEEDED",
        "e13": "EXCEPTION",
        "e63": "EXCEPTION",
        "e23": "BAD_RETURN",
        "e73": "BAD_RETURN",
        "e31": "BUSY",
        "e81": "BUSY",
    }
    rows = {row.example_id.text: row for row in client.rows(seen.finished.run_id)}
    assert "ValueError: this example is too hard" in rows["e13"].failure.message
    assert "systems.py" in rows["e13"].failure.stack_trace
    assert rows["e0"].scores["recall"] == 1.0
    metrics = seen.finished.summaries[0].metrics
    assert (metrics["num_scored"], metrics["num_failed"]) == (92, 8)


def test_an_answer_of_forty_megabytes_is_kept_and_counted(client: BenchClient) -> None:
    with start_system("lengthy") as system:
        seen = run(client, {"systems": [{"target": system.address}]}, examples(3))
    assert (seen.state, seen.failures) == ("SUCCEEDED", {})
    rows = {row.example_id.text: row for row in client.rows(seen.finished.run_id)}
    assert rows["e1"].output_tokens > 1_000_000


def test_invalid_utf8_in_a_batch_fails_only_the_culprits(client: BenchClient) -> None:
    with start_system("invalid-utf8") as system:
        seen = run(client, {"systems": [{"target": system.address}]}, examples(60))
    culprits = {f"e{number}" for number in range(60) if number % 10 == 4}
    assert seen.failures == dict.fromkeys(culprits, "UNDECODABLE_RESPONSE")
    assert len(seen.rows) == 60


def test_garbage_on_the_stream_fails_only_the_call_that_causes_it(client: BenchClient) -> None:
    with start_system("garbage") as system:
        seen = run(client, {"systems": [{"target": system.address}]}, examples(60))
    assert seen.failures == {"e3": "UNDECODABLE_RESPONSE"}
    assert len(seen.rows) == 60


def test_a_stream_that_keeps_closing_costs_no_row(client: BenchClient) -> None:
    with start_system("closer") as system:
        seen = run(client, {"systems": [{"target": system.address}]}, examples(200))
    assert (seen.state, seen.failures, len(seen.rows)) == ("SUCCEEDED", {}, 200)


def test_a_system_that_says_it_is_full_is_asked_less_often(client: BenchClient) -> None:
    with start_system("full") as system:
        seen = run(client, {"systems": [{"target": system.address}]}, examples(100))
    assert (seen.state, seen.failures, len(seen.rows)) == ("SUCCEEDED", {}, 100)


class Upper:
    name = "upper"
    max_concurrency = 8

    def process(self, example: dict[str, object]) -> dict[str, object]:
        return {**example, "response": str(example["question"]).upper()}


class Length:
    name = "length"

    def score(self, original: dict[str, object], processed: dict[str, object]) -> dict[str, float]:
        return {"length": float(len(str(processed["response"])))}


def test_an_attached_system_and_evaluator_take_part(
    daemon: DaemonProcess, client: BenchClient
) -> None:
    with Attachment([Upper(), Length()], daemon.address) as attachment:
        attachment.wait_attached(60)
        listed = {each.name: each.location for each in client.components().systems}
        assert listed["upper"] == "attached"
        spec = {
            "systems": [{"attached": "upper"}],
            "evaluators": [{"name": "length", "attached": "length"}],
        }
        seen = run(client, spec, examples(50))
    assert (seen.state, len(seen.rows), seen.failures) == ("SUCCEEDED", 50, {})
    assert {row.scores["length"] for row in seen.rows} == {7.0, 8.0}


def test_a_broken_attachment_that_comes_back_goes_on(
    daemon: DaemonProcess, client: BenchClient
) -> None:
    digest, _ = client.upload(examples(300))
    spec = {"systems": [{"attached": "slow"}], "datasets": [{"name": "given", "upload": digest}]}
    with Attachment(Slow(), daemon.address) as first:
        first.wait_attached(60)
        run_id = client.start(spec)
        wait_until(lambda: client.get(run_id).progress.completed_rows >= 30)
    with Attachment(Slow(), daemon.address):
        seen = follow(client.watch(run_id))
    assert (seen.state, len(seen.rows), seen.failures) == ("SUCCEEDED", 300, {})


class Slow:
    name = "slow"
    max_concurrency = 4

    async def process(self, example: dict[str, object]) -> dict[str, object]:
        import asyncio

        await asyncio.sleep(0.005)
        return {**example, "response": "x"}


class OtherUpper(Upper):
    version = "another"


def test_a_name_cannot_be_attached_by_another_version(daemon: DaemonProcess) -> None:
    with Attachment(Upper(), daemon.address) as first:
        first.wait_attached(60)
        second = Attachment(OtherUpper(), daemon.address)
        with pytest.raises(Exception, match="upper"):
            second.start()
            second.wait_attached(60)
        second.stop()
