"""What holds the outcome is kept from systems, however an upload spells it."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from cbench_client import BenchClient
from cbench_server import evaluate
from cbench_server.daemon.embedded import embedded
from cbench_server.datasets.withheld import OF_ANY_FILE, Withheld
from tests.e2e.following import follow
from tests.e2e.processes import Process

EXAMPLE = {
    "id": "1",
    "context": "Paris lies on the Seine.",
    "question": "Where?",
    "Answer": "a",
    "answerKey": "b",
    "GOLD-LABEL": "c",
    "Correct Answer": "d",
    "gold_answers": ["e"],
    "expected_output": "f",
    "rationale": "g",
    "is_abstention": False,
    "qa_pairs": [{"question": "?", "answer": "h"}],
    "answered_by": "nobody",
}
SEEN = {"id", "context", "question", "answered_by"}


@pytest.mark.parametrize(
    "name", [*sorted(OF_ANY_FILE), "ANSWERS", "BestAnswer", "best answer", "Test"]
)
def test_a_name_is_withheld_in_every_spelling(name: str) -> None:
    withheld = Withheld(OF_ANY_FILE)
    for spelling in (name, name.upper(), name.title(), name.replace("_", "-")):
        # Asked twice, for it remembers.
        assert spelling in withheld
        assert spelling in withheld


@pytest.mark.parametrize(
    "name", [*sorted(SEEN), "question_type", "latest", "contests", "unanswered", ""]
)
def test_no_other_name_is(name: str) -> None:
    assert name not in Withheld(OF_ANY_FILE)


def test_a_set_of_such_names_is_still_a_set() -> None:
    assert Withheld(["b", "a"]) == {"a", "b"}
    assert sorted(Withheld(["b", "a"])) == ["a", "b"]
    assert not Withheld()


class Telling:
    """Says which fields it was shown."""

    name = "telling"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return {"response": json.dumps(sorted(example))}


SERVED = """
import json
from cbench_client import serve

class Telling:
    name = "telling"
    def process(self, example):
        return {"response": json.dumps(sorted(example))}

serve(Telling(), "127.0.0.1:0")
"""


def test_a_daemon_withholds_them_of_an_upload(tmp_path: Path) -> None:
    script = tmp_path / "telling.py"
    script.write_text(SERVED)
    with (
        Process([sys.executable, str(script)]) as system,
        embedded(home=str(tmp_path / "home")) as daemon,
        BenchClient(daemon) as client,
    ):
        digest, _ = client.upload([EXAMPLE])
        spec = {
            "systems": [{"target": system.address}],
            "datasets": [{"name": "given", "upload": digest}],
        }
        run_id = follow(client.evaluate(spec)).finished.run_id
        (row,) = client.rows(run_id, include_processed=True)
    shown = json.loads(row.processed["response"].string_value)
    assert {*shown} - {"dataset"} == SEEN


def test_evaluate_withholds_them_of_its_own_examples() -> None:
    (row,) = evaluate([Telling()], [EXAMPLE], blind=True, progress=False).rows
    assert {*json.loads(row.processed["response"])} - {"dataset"} == SEEN
