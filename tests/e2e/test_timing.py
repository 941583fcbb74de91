"""Times that a daemon measures: alone, under load, and against a deadline."""

from pathlib import Path

import pytest

from cbench_client import BenchClient
from tests.fixtures.ports import held_port

from .following import follow
from .processes import examples, start_system
from .test_memory_runs import conversations, spec_for
from .test_memory_runs import start as start_memory


@pytest.mark.parametrize("timed_rows", [30, 0], ids=["timed", "not timed"])
@pytest.mark.parametrize(
    ("places", "slow"),
    [
        ("1", ["e0", "e3"]),
        ("1", ["e1", "e2"]),
        ("2", ["e3", "e4", "e9"]),
        ("", ["e2", "e7"]),
    ],
)
def test_a_slow_call_fails_only_itself_where_a_system_takes_few_at_a_time(
    client: BenchClient, places: str, slow: list[str], timed_rows: int
) -> None:
    with start_system("slow-first", "1.2", places, ",".join(slow)) as system:
        digest, _ = client.upload(examples(12))
        spec = {
            "systems": [{"target": system.address}],
            "datasets": [{"name": "given", "upload": digest}],
            "row_timeout": 0.3,
            "timed_rows": timed_rows,
        }
        seen = follow(client.evaluate(spec))
    assert seen.state == "SUCCEEDED"
    assert seen.failures == dict.fromkeys(slow, "DEADLINE_EXCEEDED")


@pytest.mark.parametrize("timed_rows", [30, 0], ids=["timed", "not timed"])
@pytest.mark.parametrize("then", ["answers", "hangs"])
def test_a_row_with_which_a_system_died_has_the_time_of_its_last_call(
    client: BenchClient, tmp_path: Path, then: str, timed_rows: int
) -> None:
    port, limit = held_port(), 1.0
    arguments = ["mortal", str(limit * 0.8), str(tmp_path / "died"), then]
    with start_system(*arguments, port=port) as first:
        digest, _ = client.upload(examples(8))
        spec = {
            "systems": [{"target": first.address}],
            "datasets": [{"name": "given", "upload": digest}],
            "row_timeout": limit,
            "timed_rows": timed_rows,
        }
        run_id = client.start(spec)
        assert first.process.wait(60) == 1
        with start_system(*arguments, port=port):
            seen = follow(client.watch(run_id))
    [row] = [each for each in seen.rows if each.example_id.text == "e3"]
    seconds = row.latency.ToTimedelta().total_seconds()
    assert row.attempts >= 2
    assert row.failure.reason == ("DEADLINE_EXCEEDED" if then == "hangs" else "")
    assert (limit if then == "hangs" else 0) <= seconds < limit * 1.8
    # What came before is there, as time that the row waited.
    assert row.queue_time.ToTimedelta().total_seconds() >= limit * 0.8


def test_a_system_that_never_answers_is_not_waited_for_long(
    client: BenchClient, tmp_path: Path
) -> None:
    log = tmp_path / "calls"
    with start_system("silent", str(log)) as system:
        digest, _ = client.upload(examples(4))
        spec = {
            "systems": [{"target": system.address}],
            "datasets": [{"name": "given", "upload": digest}],
            "row_timeout": 0.2,
            "timed_rows": 0,
        }
        seen = follow(client.evaluate(spec))
    assert seen.failures == dict.fromkeys(("e0", "e1", "e2", "e3"), "DEADLINE_EXCEEDED")
    # The first is called once, the next three times more than otherwise; then nobody waits.
    assert len(log.read_text().splitlines()) <= 1 + (2 + 3) + 2 + 2


@pytest.mark.parametrize("places", ["", "2"])
@pytest.mark.parametrize("timed_rows", [30, 0], ids=["timed", "not timed"])
def test_a_system_that_never_answers_is_given_up_as_one_that_is_away(
    client: BenchClient, places: str, timed_rows: int
) -> None:
    slow = ",".join(f"e{n}" for n in range(200))
    with start_system("slow-first", "3600", places, slow) as system:
        digest, _ = client.upload(examples(200))
        spec = {
            "systems": [{"target": system.address}],
            "datasets": [{"name": "given", "upload": digest}],
            "row_timeout": 0.1,
            "wait_timeout": 2,
            "timed_rows": timed_rows,
        }
        seen = follow(client.evaluate(spec))
    failure = seen.finished.failure
    assert (seen.state, failure.reason) == ("FAILED", "SYSTEM_GONE")
    assert failure.field == "spec.systems[0]"
    assert 'system "slow-first" has answered none of' in failure.message
    # What was waited for in vain is kept; nothing is said of the rows that were never asked.
    assert set(seen.failures.values()) == {"DEADLINE_EXCEEDED"}
    assert 0 < len(seen.rows) < 150


@pytest.mark.parametrize("resumed", [False, True])
def test_a_system_that_has_answered_is_not_given_up(client: BenchClient, resumed: bool) -> None:
    slow = ",".join(f"e{n}" for n in range(1, 12))
    with start_system("slow-first", "3600", "40", slow) as system:
        digest, _ = client.upload(examples(12))
        spec = {
            "systems": [{"target": system.address}],
            "datasets": [{"name": "given", "upload": digest}],
            # The first one has an answer within that, however busy the machine.
            "row_timeout": 0.6,
            "wait_timeout": 0.1,
            "max_concurrency": 1,
            "timed_rows": 0,
        }
        run_id = client.start(spec)
        events = client.watch(run_id)
        if resumed:
            next(event for event in events if event.WhichOneof("kind") == "row")
            client.cancel(run_id)
            client.resume(run_id)
            events = client.watch(run_id)
        seen = follow(events)
    assert seen.state == "SUCCEEDED"
    assert len(seen.failures) == 11


@pytest.mark.parametrize("timed_rows", [30, 0], ids=["timed", "not timed"])
@pytest.mark.parametrize("kind", ["ingest", "query"])
def test_a_memory_that_never_answers_is_given_up_whatever_it_forgets_and_takes_in(
    client: BenchClient, kind: str, timed_rows: int
) -> None:
    times = {"row_timeout": 0.1, "wait_timeout": 2, "timed_rows": timed_rows}
    with start_memory("hanging", "", kind) as system:
        given = conversations(200, questions=1)
        seen = follow(client.evaluate(spec_for(client, {"target": system.address}, given, **times)))
    failure = seen.finished.failure
    assert (seen.state, failure.reason) == ("FAILED", "SYSTEM_GONE")
    assert 'system "hanging" has answered none of' in failure.message
    assert 0 < len(seen.rows) < 150


@pytest.mark.parametrize("timed_rows", [30, 0], ids=["timed", "not timed"])
def test_a_memory_that_takes_in_its_first_conversations_late_is_not_given_up(
    client: BenchClient, timed_rows: int
) -> None:
    times = {"row_timeout": 0.6, "wait_timeout": 60, "timed_rows": timed_rows}
    with start_memory("hanging", "", "ingest", "9") as system:
        given = conversations(20, questions=1)
        seen = follow(client.evaluate(spec_for(client, {"target": system.address}, given, **times)))
    assert seen.state == "SUCCEEDED"
    assert 5 <= len(seen.failures) <= 9


def test_rows_say_how_they_were_timed_and_the_run_what_to_know_of_it(client: BenchClient) -> None:
    with start_system("echo") as one, start_system("charges") as other:
        digest, _ = client.upload(examples(50))
        spec = {
            "systems": [{"target": one.address}, {"target": other.address}],
            "datasets": [{"name": "given", "upload": digest}],
            "timed_rows": 12,
        }
        seen = follow(client.evaluate(spec))
    timed = [
        [row.ordinal for row in seen.rows if row.system == name and row.alone]
        for name in ("echo", "charges")
    ]
    assert sorted(timed[0]) == sorted(timed[1])
    assert len(timed[0]) == 12
    assert all(row.HasField("handler_time") for row in seen.rows)
    assert {row.calls_in_flight for row in seen.rows if row.alone} == {1}
    run = client.get(seen.finished.run_id)
    codes = [note.code for note in run.notes]
    assert codes == ["SHARED_MACHINE", "COMPRESSION_UNKNOWN", "COMPRESSION_UNKNOWN"]
    assert run.notes[0].text.endswith("share the daemon's machine: echo, charges.")
    assert run.summaries[0].metrics["num_timed_alone"] == 12
