"""Components that try to exit, or say what cannot be written down, cost themselves only."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cbench_client import BenchClient, Refused
from cbench_client.messages.convert import value_from_proto
from tests.e2e.following import Followed, follow
from tests.e2e.processes import DaemonProcess

from .test_requests import BUILTIN

FLAGS = ("--import", "tests.faults.odd_components")
ERRORS = ("no-text", "mute", "endless")
EXITS = ("exits", "interrupts")


@pytest.fixture(scope="module")
def odd_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BenchClient]:
    home: Path = tmp_path_factory.mktemp("odd") / "home"
    with DaemonProcess(home, *FLAGS) as daemon, BenchClient(daemon.address) as client:
        yield client


def ended(client: BenchClient, **more: Any) -> Followed:
    """Follow a run to its end, which is also the one that is stored."""
    seen = follow(client.evaluate({**BUILTIN, **more}))
    assert client.get(seen.finished.run_id).state == seen.finished.state
    return seen


@pytest.mark.parametrize("placement", ["inline", "thread"])
@pytest.mark.parametrize("error", ERRORS)
def test_what_an_evaluator_raises_is_noted_on_its_rows(
    odd_client: BenchClient, error: str, placement: str
) -> None:
    name = f"{error}-{placement}"
    seen = ended(odd_client, evaluators=[{"name": "string-match"}, {"name": name}])
    assert (seen.state, seen.failures) == ("SUCCEEDED", {})
    notes = [note for row in seen.rows for note in row.evaluator_notes if note.HasField("failure")]
    assert len(notes) == len(seen.rows)
    assert {note.evaluator for note in notes} == {name}
    assert all(name in note.failure.message for note in notes)
    assert all(len(note.failure.message) < 2_000 for note in notes)


@pytest.mark.parametrize(
    "told", ["no-text", "deep", "huge-number", "set", "other-keys", "endlessly"]
)
def test_what_an_evaluator_tells_beside_its_score_costs_its_own_scores(
    odd_client: BenchClient, told: str
) -> None:
    name = f"told-{told}"
    seen = ended(odd_client, evaluators=[{"name": "string-match"}, {"name": name}])
    assert (seen.state, seen.failures) == ("SUCCEEDED", {})
    notes = [note for row in seen.rows for note in row.evaluator_notes if note.HasField("failure")]
    assert {note.evaluator for note in notes} == {name}
    assert len(notes) == len(seen.rows)
    assert "details" in notes[0].failure.message
    assert all(name not in row.scores for row in seen.rows)


@pytest.mark.parametrize("metric", [*ERRORS, *EXITS, "deep", "across"])
def test_what_a_metric_raises_or_gives_costs_itself_only(
    odd_client: BenchClient, metric: str
) -> None:
    seen = ended(odd_client, metrics=[{"name": "mean-score"}, {"name": metric}])
    assert seen.state == "SUCCEEDED"
    assert seen.finished.summaries[0].metrics
    failures = value_from_proto(seen.finished.config["metric_failures"])
    assert [*failures] == [metric]
    assert len(failures[metric]) < 2_000


def test_a_key_that_is_no_text_is_stored_as_one(odd_client: BenchClient) -> None:
    seen = ended(odd_client, metrics=[{"name": "no-key"}])
    assert seen.state == "SUCCEEDED"
    assert "k?" in seen.finished.summaries[0].metrics


def test_a_run_that_cannot_be_summarised_has_an_end(odd_client: BenchClient) -> None:
    seen = ended(odd_client, metrics=[{"name": "no-name"}])
    assert seen.state == "FAILED"
    assert seen.finished.failure.reason == "CANNOT_SUMMARIZE"
    rows = list(odd_client.rows(seen.finished.run_id))
    assert len(rows) == len(seen.rows) > 0


@pytest.mark.parametrize("error", [*ERRORS, *EXITS])
def test_what_a_dataset_raises_ends_its_run(odd_client: BenchClient, error: str) -> None:
    seen = ended(odd_client, datasets=[{"name": error}])
    assert seen.state == "FAILED"
    assert 0 < len(seen.finished.failure.message) < 2_000


@pytest.mark.parametrize("error", EXITS)
@pytest.mark.parametrize(
    ("place", "key", "name"),
    [
        ("systems", "builtin", "{}"),
        ("systems", "builtin", "{}-described"),
        ("evaluators", "name", "{}"),
        ("datasets", "name", "{}-at-once"),
    ],
)
def test_what_exits_when_a_run_is_started_is_refused(
    odd_client: BenchClient, error: str, place: str, key: str, name: str
) -> None:
    with pytest.raises(Refused, match="tried to exit"):
        odd_client.start({**BUILTIN, place: [{key: name.format(error)}]})
    assert ended(odd_client).state == "SUCCEEDED"


@pytest.mark.parametrize("error", EXITS)
def test_a_report_that_exits_is_refused(odd_client: BenchClient, error: str) -> None:
    run_id = ended(odd_client).finished.run_id
    with pytest.raises(Refused, match="tried to exit"):
        list(odd_client.export(run_id, error))
    assert list(odd_client.export(run_id, "csv"))
