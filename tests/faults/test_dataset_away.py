"""Data elsewhere that goes away while it is read: the run waits, and reads on where it was."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cbench_client import BenchClient, Refused
from tests.e2e.following import Followed, follow
from tests.e2e.processes import DaemonProcess, Process, examples, wait_until
from tests.fixtures.ports import held_port

from .test_waiting import FAILED, WAITING

FILE_SERVER = Path(__file__).with_name("file_server.py")
CANCELLED, ROWS = 5, 400
CONTEXT = "The capital of France is Paris. " * 20


class Files:
    """A folder that a web server shows, and a daemon whose configuration names a file of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "files"
        self.folder.mkdir()
        self.port = held_port()
        self.gate = folder / "gate"
        self.config = folder / "cbench.toml"
        self.config.write_text(
            f'[data.traces]\nurl = "http://127.0.0.1:{self.port}/traces.jsonl"\n'
            # Small pieces, so that a few hundred examples are many of them.
            "options = { block_size = 4096 }\n"
        )
        self.write(examples(ROWS, CONTEXT))

    def write(self, given: list[dict[str, Any]]) -> None:
        text = "".join(json.dumps(each) + "\n" for each in given)
        (self.folder / "traces.jsonl").write_text(text)

    def serve(self, how: str = "dies", pieces: int = 8) -> Process:
        """Serve them until so many pieces were asked for, or for as long as the gate is there."""
        named = (str(self.folder), str(self.port), how, str(pieces), str(self.gate))
        return Process([sys.executable, str(FILE_SERVER), *named])

    def heal(self) -> None:
        self.gate.touch()

    @property
    def is_away(self) -> bool:
        """Whether somebody has asked in vain."""
        return self.gate.with_suffix(".asked").exists()


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.fixture
def bench(files: Files, tmp_path: Path) -> Iterator[BenchClient]:
    with (
        DaemonProcess(tmp_path / "home", "--config", str(files.config)) as daemon,
        BenchClient(daemon.address) as client,
    ):
        yield client


def spec(**more: Any) -> dict[str, Any]:
    return {"systems": [{"builtin": "identity"}], "datasets": [{"name": "traces"}], **more}


def reached(client: BenchClient, run_id: str, state: int) -> Any:
    return wait_until(lambda: (run := client.get(run_id)).state == state and run, 90)


def assert_exact(seen: Followed) -> None:
    assert (seen.state, seen.failures) == ("SUCCEEDED", {}), seen.finished.failure
    ids = [row.example_id.text for row in seen.rows]
    assert sorted(ids) == sorted(f"e{number}" for number in range(ROWS))


@pytest.mark.parametrize(
    "how",
    ["dies", "is-busy", "breaks-off", pytest.param("keeps-silent", marks=pytest.mark.faults)],
)
def test_a_run_waits_for_its_data_and_reads_every_example_once(
    bench: BenchClient, files: Files, how: str
) -> None:
    with files.serve(how):
        run_id = bench.start(spec())
        run = reached(bench, run_id, WAITING)
        assert 'dataset "traces" is away' in run.waiting_reason
        files.heal()
        if how != "dies":
            seen = follow(bench.watch(run_id))
    if how == "dies":
        with files.serve():
            seen = follow(bench.watch(run_id))
    assert_exact(seen)
    assert seen.states[-2:] == ["WAITING", "RUNNING"]


def test_data_that_stays_away_fails_the_run_which_can_be_resumed(
    bench: BenchClient, files: Files
) -> None:
    with files.serve():
        run_id = bench.start(spec(wait_timeout=1.5))
        run = reached(bench, run_id, FAILED)
    assert (run.failure.reason, run.failure.field) == ("DATASET_GONE", "spec.datasets[0]")
    assert "stayed away for 1.5s" in run.failure.message
    files.heal()
    with files.serve():
        bench.resume(run_id)
        assert_exact(follow(bench.watch(run_id)))


def test_a_run_that_waits_for_its_data_is_cancelled_at_once_and_ends_once(
    bench: BenchClient, files: Files
) -> None:
    with files.serve("is-busy"):
        run_id = bench.start(spec())
        reached(bench, run_id, WAITING)
        assert bench.cancel(run_id).state == CANCELLED
        assert follow(bench.watch(run_id)).states.count("CANCELLED") <= 1
        files.heal()
        bench.resume(run_id)
        assert_exact(follow(bench.watch(run_id)))


@pytest.mark.parametrize("changed", ["first", "last", "more"])
def test_a_file_that_has_changed_meanwhile_is_not_mixed_with_what_was_read(
    bench: BenchClient, files: Files, changed: str
) -> None:
    with files.serve():
        run_id = bench.start(spec())
        reached(bench, run_id, WAITING)
    given = examples(ROWS + (changed == "more"), CONTEXT)
    if changed != "more":
        given[0 if changed == "first" else -1]["answer"] = "Rome"
    files.write(given)
    files.heal()
    with files.serve():
        run = reached(bench, run_id, FAILED)
    assert run.failure.reason == "BAD_DATASET"
    assert "has changed since the run began" in run.failure.message


def test_a_daemon_that_reads_in_vain_ends_at_once_and_the_next_reads_on(
    files: Files, tmp_path: Path
) -> None:
    """It does not wait for calls in flight, of which there are none, nor for the server."""
    flags = ("--config", str(files.config), "--drain-seconds", "600")
    with files.serve("keeps-silent"):
        with DaemonProcess(tmp_path / "home", *flags) as daemon:
            with BenchClient(daemon.address) as client:
                run_id = client.start(spec())
                wait_until(lambda: files.is_away)
            assert daemon.terminate(timeout=20) == 0
        files.heal()
        with (
            DaemonProcess(tmp_path / "home", *flags) as daemon,
            BenchClient(daemon.address) as client,
        ):
            assert_exact(follow(client.watch(run_id)))


def test_what_a_server_forbids_or_has_not_fails_at_once(bench: BenchClient, files: Files) -> None:
    with files.serve("forbids"):
        run_id = bench.start(spec())
        run = reached(bench, run_id, FAILED)
        assert (run.failure.reason, run.waiting_reason) == ("BAD_DATASET", "")
        assert "WAITING" not in follow(bench.watch(run_id)).states


def test_a_run_whose_data_is_away_from_the_first_is_refused(bench: BenchClient) -> None:
    with pytest.raises(Refused) as caught:
        bench.start(spec())
    assert caught.value.reason == "DATASET_AWAY"
