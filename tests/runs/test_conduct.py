"""What a system did, in words: nothing, something else each time, pointers, too much."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cbench_client import BenchClient, Refused
from cbench_server import evaluate, evaluate_memory
from cbench_server.daemon.embedded import embedded
from cbench_server.reports.report import report_of
from cbench_server.reports.table import RowFacts
from cbench_server.reports.table import notes as table_notes
from cbench_server.systems.controls import Identity
from tests.e2e.following import Followed, run

EXAMPLES = [
    {
        "id": number,
        "context": f"The code of door {number} is zebra{number}. They went home early.",
        "question": "code?",
        "answer": f"zebra{number}",
    }
    for number in range(30)
]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BenchClient]:
    home: Path = tmp_path_factory.mktemp("home")
    with embedded(home=str(home)) as target, BenchClient(target) as connected:
        yield connected


def outputs(client: BenchClient, name: str, contexts: list[str]) -> dict[str, Any]:
    pairs = zip(EXAMPLES, contexts, strict=True)
    given = [{"id": each["id"], "context": text} for each, text in pairs]
    digest, _ = client.upload(given)
    return {"predictions": digest, "name": name}


def said(seen: Followed, code: str) -> dict[str, str]:
    return {note.system: note.text for note in seen.finished.notes if note.code == code}


def values(seen: Followed, system: str) -> dict[str, float]:
    (summary,) = [each for each in seen.finished.summaries if each.system == system]
    return dict(summary.metrics)


def test_a_system_that_changes_nothing_is_named(client: BenchClient) -> None:
    whole = [each["context"] for each in EXAMPLES]
    some = [text if number < 10 else text[:20] for number, text in enumerate(whole)]
    systems = [
        outputs(client, "lazy", whole),
        outputs(client, "partly", some),
        {"builtin": "identity"},
    ]
    seen = run(client, {"systems": systems}, EXAMPLES)
    assert said(seen, "UNCHANGED") == {
        name: f"{name} changed nothing on 30 of 30 rows." for name in ("lazy", "identity")
    }
    assert [values(seen, name)["num_unchanged"] for name in ("lazy", "partly")] == [30.0, 10.0]
    assert values(seen, "partly")["num_with_context"] == 30.0


def test_pointers_that_were_left_are_counted(client: BenchClient) -> None:
    contexts = [
        "<<store:3fa9c1d20b 2 sentences>>" if number % 3 else "They went home."
        for number in range(30)
    ]
    seen = run(client, {"systems": [outputs(client, "pointing", contexts)]}, EXAMPLES)
    assert said(seen, "RETRIEVAL_POINTERS")["pointing"].startswith(
        "pointing: 20 of 30 contexts hold pointers to text that is kept elsewhere."
    )
    assert sum("RETRIEVAL_POINTERS" in row.marks for row in seen.rows) == 20


class Counting:
    """Returns something else whenever it is called."""

    name = "counting"

    def __init__(self, *, is_steady: bool = False) -> None:
        self.calls = 0
        self._is_steady = is_steady

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        self.calls += 1
        word = "steady" if self._is_steady else str(self.calls)
        return {**example, "response": f"zebra {word}"}


def test_a_few_rows_are_asked_twice_and_are_no_rows() -> None:
    system = Counting()
    result = evaluate([system], EXAMPLES, progress=False)
    assert (len(result.rows), system.calls) == (30, 35)
    assert result.summary["counting"]["num_asked_twice"] == 5.0
    assert result.summary["counting"]["num_differed"] == 5.0
    (note,) = [note for note in result.config["notes"] if note["code"] != "COMPRESSION_UNKNOWN"]
    assert note["code"] == "NONDETERMINISTIC"
    assert "asked again, it answered 5 of 5 rows differently" in note["text"]
    assert note["text"] in table_notes(report_of(result).run, RowFacts())


def test_a_steady_system_gets_no_sentence_and_asking_can_be_turned_off() -> None:
    steady, unasked = Counting(is_steady=True), Counting()
    result = evaluate([steady], EXAMPLES, progress=False)
    assert [note["code"] for note in result.config["notes"]] == ["COMPRESSION_UNKNOWN"]
    assert result.summary["counting"]["num_asked_twice"] == 5.0
    result = evaluate([unasked], EXAMPLES, progress=False, asked_again=0)
    assert unasked.calls == 30
    assert [note["code"] for note in result.config["notes"]] == ["COMPRESSION_UNKNOWN"]


def test_a_short_run_is_not_asked_again() -> None:
    system = Counting()
    result = evaluate([system, Identity()], EXAMPLES[:9], progress=False)
    assert system.calls == 9
    assert result.summary["counting"]["num_asked_twice"] == 0.0
    evaluate([system], EXAMPLES[:10], progress=False)
    assert system.calls == 9 + 15


class Hoarding:
    """Hands over all it was told, whatever the budget is."""

    name = "hoarding"

    def __init__(self) -> None:
        self._said: list[str] = []

    def reset(self) -> None:
        self._said = []

    def ingest(self, turns: list[dict[str, Any]]) -> None:
        self._said += [turn["content"] for turn in turns]

    def query(self, question: str, budget: int | None = None) -> dict[str, Any]:
        return {"context": "\n".join(self._said)}


def test_a_budget_that_was_not_kept_is_marked_and_charged() -> None:
    result = evaluate_memory([Hoarding()], "mini-memory", max_examples=2, budget=50, progress=False)
    over = [row for row in result.rows if "OVER_BUDGET" in row.marks]
    assert over == result.rows
    assert all(row.input_tokens == row.context_tokens_out > 50 for row in over)
    (note,) = [note for note in result.config["notes"] if note["code"] == "OVER_BUDGET"]
    rows, most = len(over), max(row.input_tokens for row in over)
    assert note["text"] == (
        f"hoarding handed over more than the budget of 50 tokens on {rows} of {rows} questions, "
        f"up to {most}. All of them are charged."
    )


def test_a_budget_that_was_kept_is_not_spoken_of(client: BenchClient) -> None:
    spec = {
        "systems": [{"builtin": "full-history"}],
        "datasets": [{"name": "mini-memory", "max_examples": 2}],
        "kind": "RUN_KIND_MEMORY",
        "query_budget": 50,
    }
    seen = Followed()
    for event in client.evaluate(spec):
        seen.take(event)
    assert not said(seen, "OVER_BUDGET")
    assert not any("OVER_BUDGET" in row.marks for row in seen.rows)


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"asked_again": -1}, "asked_again must be at least 0, not -1"),
        (
            {
                "asked_again": 3,
                "kind": "RUN_KIND_MEMORY",
                "systems": [{"builtin": "bm25"}],
                "datasets": [{"name": "mini-memory"}],
            },
            "asked_again means nothing in a memory run",
        ),
    ],
)
def test_what_cannot_be_asked_again_is_refused(
    client: BenchClient, fields: dict[str, Any], complaint: str
) -> None:
    spec = {"systems": [{"builtin": "identity"}], "datasets": [{"name": "mini-qa"}], **fields}
    with pytest.raises(Refused, match=complaint):
        client.start(spec)
