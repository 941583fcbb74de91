"""Systems, evaluators and clients that say odd things cost their own rows and nobody else's."""

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import grpc
import pytest

from cbench_client import BenchClient, Refused
from cbench_server.daemon.embedded import embedded
from cbench_server.scoring.placement import Scoring
from cbench_server.spec import Run, RunSpec, RunState
from cbench_server.storage.sqlite import SqliteStore
from tests.e2e.following import follow, run
from tests.e2e.processes import DaemonProcess, Process, examples

from .test_requests import BUILTIN

ODD = Path(__file__).with_name("odd_system.py")
ROWS = 20


def test_odd_times_and_delays_cost_their_own_rows(client: BenchClient, tmp_path: Path) -> None:
    log = tmp_path / "calls"
    with Process([sys.executable, str(ODD), str(log)]) as system:
        spec = {"systems": [{"target": system.address}], "row_timeout": 5.0, "timed_rows": 0}
        seen = run(client, spec, examples(ROWS))
    assert seen.state == "SUCCEEDED"
    assert seen.failures.keys() == {"e5", "e6", "e7"}
    # They are tried until their time is up, which may be in the middle of the last attempt.
    assert set(seen.failures.values()) <= {"ODD", "DEADLINE_EXCEEDED"}
    # Rows are read back as they were seen, over every way there is to read them.
    run_id = seen.finished.run_id
    stored = {row.example_id.text: row for row in client.rows(run_id, include_processed=True)}
    assert len(stored) == len(follow(client.watch(run_id)).rows) == ROWS
    assert stored["e1"].usage.compute_time.seconds == 315_576_000_000
    assert stored["e3"].handler_time.seconds == 315_576_000_000
    # A delay of a nanosecond, or less than none, is no way round the pause between attempts.
    calls = Counter(log.read_text().split())
    assert max(calls.values()) < 30
    assert all(calls[f"e{number}"] >= 2 for number in (5, 6, 7))


@pytest.mark.parametrize("placement", ["inline", "thread", "io"])
def test_an_evaluator_that_interrupts_is_noted_and_the_daemon_lives(
    tmp_path: Path, placement: str
) -> None:
    flags = ("--import", "tests.faults.exiting_evaluators")
    name = f"interrupts-{placement}"
    with DaemonProcess(tmp_path / "home", *flags) as daemon, BenchClient(daemon.address) as client:
        seen = follow(client.evaluate({**BUILTIN, "evaluators": [{"name": name}]}))
        assert seen.state == "SUCCEEDED"
        notes = [note for row in seen.rows for note in row.evaluator_notes]
        assert {note.evaluator for note in notes if note.HasField("failure")} == {name}
        assert daemon.process.poll() is None


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"repeats": 2**31 - 1}, "repeats must be at most 10,000, not 2,147,483,647"),
        ({"threshold": float("nan")}, "threshold must be a finite number, not nan"),
        ({"labels": {"why": "x" * 1_000_001}}, "labels may have 1,000,000 characters"),
        ({"labels": {"why": "x" * 2_000_000}}, "the request takes 2,000,085 bytes"),
        ({"systems": [{"builtin": "identity", "name": "x" * 201}]}, "at most 200 characters"),
        ({"systems": [{"builtin": "identity", "name": "a/b"}]}, "no slash"),
        ({"systems": [{"builtin": "identity", "name": "a\0"}]}, "cannot be printed"),
    ],
)
def test_values_beyond_the_limits_are_refused_by_name(
    daemon_address: str, fields: dict[str, Any], said: str
) -> None:
    with BenchClient(daemon_address) as client:
        with pytest.raises(Refused, match=said):
            client.start({**BUILTIN, **fields})
        assert list(client.list()) == []


@pytest.mark.parametrize("method", ["Bench/UploadExamples", "Gateway/Attach"])
def test_bytes_that_are_no_message_are_the_senders_fault(daemon_address: str, method: str) -> None:
    with grpc.insecure_channel(daemon_address) as channel:
        call = channel.stream_stream(f"/cbench.v1.{method}")
        with pytest.raises(grpc.RpcError) as caught:
            list(call(iter([b"\xff\xff\xff"]), timeout=20))
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "cannot be decoded" in caught.value.details()


@pytest.mark.parametrize("name", ["", "a\0b", "x" * 201])
async def test_a_score_without_a_proper_name_is_the_evaluators_failure(name: str) -> None:
    class Misnames:
        placement = "inline"

        def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
            return {name: 1.0}

    misnames: Any = Misnames()
    misnames.name = "misnames"
    result = Scoring().inline([misnames])
    assert result is not None
    scored = result.score({"id": 1}, {"response": "x"})
    assert scored.scores == {}
    assert "names should be texts" in scored.failures["misnames"].message


def test_repeats_are_made_as_they_are_called(client: BenchClient) -> None:
    digest, _ = client.upload(examples(2))
    spec = {
        "systems": [{"builtin": "identity"}],
        "datasets": [{"name": "given", "upload": digest}],
        "repeats": 700,
    }
    seen = follow(client.evaluate(spec))
    assert sorted(seen.keys) == [("identity", n, repeat) for n in (0, 1) for repeat in range(700)]


async def test_runs_with_huge_labels_are_listed_page_by_page(tmp_path: Path) -> None:
    # Of an earlier version, which did not refuse them.
    store = SqliteStore.open(tmp_path)
    for number in range(3):
        spec = RunSpec(systems=(), datasets=(), labels={"why": "x" * 9_000_000})
        await store.create_run(Run(f"r{number}", spec, RunState.SUCCEEDED, float(number)))
    first = await store.page_runs()
    await store.close()
    assert ([run.run_id for run in first.runs], first.next_before) == (["r2"], "r2")
    with embedded(home=str(tmp_path)) as target, BenchClient(target) as client:
        assert [run.run_id for run in client.list()] == ["r2", "r1", "r0"]
