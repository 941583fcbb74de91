"""A store that version 0.1.0 wrote is read, resumed, rescored and reused by this one.

store-0001.tar.xz was made by make_store.py at the commit that added it.
"""

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cbench_client import Attachment, BenchClient
from cbench_client._gen.cbench.v1 import bench_pb2
from tests.compatibility.make_store import EXAMPLES, plain, read
from tests.compatibility.systems import CachedSystem, Keeper, Notebook, cached_rows
from tests.e2e.following import follow
from tests.e2e.processes import DaemonProcess, wait_until

ARCHIVE = Path(__file__).with_name("store-0001.tar.xz")
DONE = ("process", "memory", "rescored")
HALF_DONE = {"half_process": ("keeper", 48), "half_memory": ("notebook", 15)}
# What later versions may add to what this one wrote, and never change.
_KEY = ("system", "ordinal", "repeat")


class Counting:
    """Counts calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> None:
        self.calls += 1


def unpacked(folder: Path) -> Path:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked(tmp_path_factory.mktemp("old"))


@pytest.fixture(scope="module")
def expected(old: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((old / "expected.json").read_text())
    return found


@pytest.fixture(scope="module")
def client(old: Path) -> Iterator[BenchClient]:
    with DaemonProcess(old / "home") as daemon, BenchClient(daemon.address) as bench:
        yield bench


def assert_holds(found: Any, told: Any) -> None:
    """Check that all that was told then is found now, where more may stand."""
    if isinstance(told, dict):
        for name, value in told.items():
            assert_holds(found.get(name), value)
    elif isinstance(told, list):
        assert len(found) == len(told)
        for one, other in zip(found, told, strict=True):
            assert_holds(one, other)
    else:
        assert found == told


def test_its_runs_are_listed(client: BenchClient, expected: dict[str, Any]) -> None:
    listed = {run.run_id for run in client.list()}
    assert {each["run_id"] for each in expected.values()} <= listed
    labelled = {run.run_id for run in client.list(labels={"team": "red"})}
    assert {expected[name]["run_id"] for name in ("process", "half_process")} <= labelled


@pytest.mark.parametrize("name", DONE)
def test_its_rows_and_summaries_are_what_they_were(
    client: BenchClient, expected: dict[str, Any], name: str
) -> None:
    told = expected[name]
    assert_holds(plain(read(client, told["run_id"])), told)


@pytest.mark.parametrize("name", DONE)
def test_its_events_are_watched_from_any_cursor(
    client: BenchClient, expected: dict[str, Any], name: str
) -> None:
    told = expected[name]
    events = list(client.watch(told["run_id"], include_processed=True))
    stored = [event for event in events if event.sequence]
    assert [event.sequence for event in stored] == list(range(1, told["last_sequence"] + 1))
    keys = {tuple(row[part] for part in _KEY) for row in told["rows"]}
    seen = [event.row for event in stored if event.HasField("row")]
    assert {(row.system, row.ordinal, row.repeat) for row in seen} == keys
    for cursor in (1, told["last_sequence"] // 2, told["last_sequence"] - 1):
        rest = [each for each in client.watch(told["run_id"], cursor) if each.sequence]
        assert [each.sequence for each in rest] == [
            each.sequence for each in stored if each.sequence > cursor
        ]


@pytest.mark.parametrize("name", HALF_DONE)
def test_its_half_done_runs_go_on_where_they_stopped(
    client: BenchClient, expected: dict[str, Any], name: str
) -> None:
    told = expected[name]
    system, total = HALF_DONE[name]
    counting = Counting()
    offered = Keeper(counting) if system == "keeper" else Notebook(counting)
    with Attachment(offered, client.target) as attachment:
        attachment.wait_attached(60)
        seen = follow(client.watch(told["run_id"]))
    assert seen.state == "SUCCEEDED"
    assert sorted(seen.keys) == sorted(set(seen.keys))
    assert len(seen.keys) == total
    assert counting.calls == total - len(told["rows"])
    now = {tuple(row[part] for part in _KEY): row for row in _rows(client, told["run_id"])}
    for row in told["rows"]:
        assert_holds(now[tuple(row[part] for part in _KEY)], row)


def test_its_answers_are_rescored(client: BenchClient, expected: dict[str, Any]) -> None:
    told = expected["process"]
    run_id = client.rescore(told["run_id"]).run_id
    wait_until(lambda: client.get(run_id).HasField("end_time"))
    assert client.get(run_id).state == bench_pb2.RUN_STATE_SUCCEEDED

    # Context retention finds answers by another rule now, and is named by another version.
    def by_the_same_rule(row: dict[str, Any]) -> dict[str, float]:
        return {name: score for name, score in row["scores"].items() if name != "answer_recall"}

    scores = [by_the_same_rule(row) for row in _rows(client, run_id)]
    assert scores == [by_the_same_rule(row) for row in told["rows"]]


def test_its_answers_are_reused_without_a_call(tmp_path: Path, expected: dict[str, Any]) -> None:
    counting = Counting()
    with (
        DaemonProcess(unpacked(tmp_path) / "home") as daemon,
        BenchClient(daemon.address) as client,
    ):
        # It waits for the same system, and would call it as soon as that is there.
        client.cancel(expected["half_process"]["run_id"])
        digest, _ = client.upload(EXAMPLES)
        spec = {
            "systems": [{"attached": "keeper", "options": {"words": 9}}],
            "datasets": [{"name": "given", "upload": digest}],
            "reuse": True,
            "repeats": 2,
        }
        with Attachment(Keeper(counting), client.target) as attachment:
            attachment.wait_attached(60)
            seen = follow(client.evaluate(spec))
    # What failed then is tried again.
    failed = [row for row in seen.rows if row.HasField("failure")]
    assert (len(seen.rows), len(failed), counting.calls) == (48, 2, 2)
    assert sum(row.reused for row in seen.rows) == 46


def test_its_row_cache_is_never_misread(old: Path) -> None:
    fresh = cached_rows(CachedSystem(), EXAMPLES, None)
    cached = cached_rows(CachedSystem(), EXAMPLES, str(old / "cache"))
    assert [(row.example_id, row.scores, row.processed) for row in cached] == [
        (row.example_id, row.scores, row.processed) for row in fresh
    ]


def _rows(client: BenchClient, run_id: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = plain(read(client, run_id)["rows"])
    return rows
