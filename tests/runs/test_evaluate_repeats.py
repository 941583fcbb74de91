"""`repeats` of `evaluate()` and `evaluate_memory()`: every try is a row, as in the daemon."""

from pathlib import Path
from typing import Any

import pytest

from cbench_client import BenchClient, Server
from cbench_server import evaluate, evaluate_memory
from cbench_server.errors import InvalidInput, InvalidSpec
from cbench_server.runs.conduct import NONDETERMINISTIC

ASKED: list[int] = []
EXAMPLES = [
    {"id": number, "context": "Paris or Rome.", "question": "Where?", "answer": "Paris"}
    for number in range(4)
]
CONVERSATIONS = [
    {
        "id": number,
        "turns": [{"role": "user", "content": f"My name is N{number}."}],
        "qa_pairs": [{"question": "Who?", "answer": f"N{number}"}],
    }
    for number in range(2)
]


class Wavering:
    """Answers an odd example differently each time, and an even one always well."""

    name = "wavering"
    version = "1"
    max_concurrency = 1

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        ASKED.append(example["id"])
        is_well = example["id"] % 2 == 0 or ASKED.count(example["id"]) % 2
        return {**example, "response": "Paris" if is_well else "Rome"}


class Recalls:
    name = "recalls"
    version = "1"

    def __init__(self) -> None:
        self._turns: list[str] = []

    def reset(self) -> None:
        self._turns = []

    def ingest(self, turns: list[dict[str, Any]]) -> None:
        ASKED.append(len(turns))
        self._turns += [turn["content"] for turn in turns]

    def query(self, question: str) -> str:
        return " ".join(self._turns)


@pytest.fixture(autouse=True)
def nothing_asked() -> None:
    ASKED.clear()


def test_every_try_is_a_row_and_what_differed_is_counted() -> None:
    result = evaluate([Wavering()], EXAMPLES, repeats=3, progress=False)
    assert [(row.ordinal, row.repeat) for row in result.rows] == [
        (ordinal, repeat) for ordinal in range(4) for repeat in range(3)
    ]
    summary = result.summary["wavering"]
    assert (summary["num_asked_twice"], summary["num_differed"]) == (4, 2)
    assert summary["pass_at_3"] == 1.0
    assert result.config["num_repeats"] == 3
    notes = [note["text"] for note in result.config["notes"] if note["code"] == NONDETERMINISTIC]
    assert notes == [
        "wavering is not deterministic: its 3 tries differ on 2 of 4 examples (50.0%)."
    ]
    assert result.filter(system="wavering").summary["wavering"]["num_differed"] == 2


def test_both_doors_make_the_same_of_repeats(daemon_address: str) -> None:
    here = evaluate([Wavering()], EXAMPLES, repeats=3, blind=True, progress=False)
    ASKED.clear()
    with Server(Wavering()) as server, BenchClient(daemon_address) as client:
        digest, _ = client.upload(EXAMPLES)
        run_id = client.start(
            {
                "systems": [{"target": server.address}],
                "datasets": [{"name": "made", "upload": digest}],
                "repeats": 3,
            }
        )
        for _ in client.watch(run_id):
            pass
        run = client.get(run_id)
    there = {each.system: dict(each.metrics) for each in run.summaries}["wavering"]
    ours = here.summary["wavering"]
    names = {name for name in ours if name.startswith(("pass_at", "mean_score", "num_", "f1"))}
    alike = {name: ours[name] for name in names if ours[name] is not None}
    assert alike == pytest.approx({name: there[name] for name in alike})
    assert NONDETERMINISTIC in {note.code for note in run.notes}


def test_no_try_of_the_cache_stands_in_for_another(tmp_path: Path) -> None:
    evaluate([Wavering()], EXAMPLES, repeats=2, cache_dir=tmp_path, progress=False)
    assert len(ASKED) == 8
    more = evaluate([Wavering()], EXAMPLES, repeats=3, cache_dir=tmp_path, progress=False)
    assert len(ASKED) == 12
    assert [row.reused for row in more.rows] == [True, True, False] * 4


def test_repeats_put_conversations_in_anew() -> None:
    result = evaluate_memory([Recalls()], CONVERSATIONS, repeats=2, progress=False)
    assert [(row.ordinal, row.repeat) for row in result.rows] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert len(ASKED) == 4
    assert result.summary["recalls"]["num_differed"] == 0


@pytest.mark.parametrize(
    ("repeats", "error", "said"),
    [
        (0, InvalidSpec, "repeats must be at least 1, not 0"),
        (1.5, InvalidInput, "repeats must be a whole number, not 1.5"),
    ],
)
def test_what_cannot_be_meant_is_refused(repeats: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        evaluate([Wavering()], EXAMPLES, repeats=repeats, progress=False)
