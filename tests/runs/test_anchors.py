"""Anchors: in every run with a reader, its noise and what it guesses, never ranked."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cbench_client import BenchClient, Refused
from cbench_server.daemon.embedded import embedded
from cbench_server.runs import anchors
from tests.e2e.following import Followed, run
from tests.fixtures.model_server import Handler, ModelServer, clean_environment, server

__all__ = ["clean_environment", "server"]

_FILLER = "Nothing else was noted on that day in the harbour. "


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BenchClient]:
    home: Path = tmp_path_factory.mktemp("home")
    with embedded(home=str(home)) as target, BenchClient(target) as connected:
        yield connected


def door(number: int) -> dict[str, Any]:
    context = f"{_FILLER}The code of door {number} is zebra{number}. {_FILLER}"
    question = f"What is the code of door {number}?"
    return {"id": number, "context": context, "question": question, "answer": f"zebra{number}"}


DOORS = [door(number) for number in range(20)]


def knowing(server: ModelServer) -> None:
    """Read the code; know every eighth by heart; say every tenth otherwise when asked again."""
    seen: Counter[str] = Counter()

    def step(handler: Handler) -> None:
        text = handler.request_body["messages"][-1]["content"]
        number = int(re.findall(r"code of door (\d+)\?", text)[0])
        word = f"zebra{number}" if f"is zebra{number}." in text or number % 8 == 0 else "unknown"
        with handler.server.lock:
            seen[text] += 1
            if number % 10 == 3 and seen[text] % 2 == 0:
                word = "no idea"
        body = f'{{"choices": [{{"message": {{"content": "{word}"}}}}]}}'
        handler.reply(200, body)

    server.steps.append(step)


def short(client: BenchClient, doors: list[dict[str, Any]] = DOORS) -> dict[str, Any]:
    outputs = [{"id": each["id"], "context": each["context"][:60]} for each in doors]
    digest, _ = client.upload(outputs)
    return {"predictions": digest, "name": "short"}


def by_system(seen: Followed) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for row in seen.rows:
        found.setdefault(row.system, []).append(row)
    return found


def notes(seen: Followed) -> dict[str, str]:
    return {note.code: note.text for note in seen.finished.notes}


def ranked(seen: Followed) -> list[str]:
    return [
        each.system
        for each in seen.finished.summaries
        if "pareto_rank" in (*each.metrics, *each.undefined_metrics)
    ]


def config(client: BenchClient, seen: Followed) -> dict[str, Any]:
    from cbench_server.rpc.runs import run_from_proto

    return run_from_proto(client.get(seen.finished.run_id)).config


def test_a_reader_run_says_its_noise_and_what_is_guessed(
    client: BenchClient, server: ModelServer
) -> None:
    knowing(server)
    spec = {"systems": [short(client)], "reader": {"base_url": server.url}}
    seen = run(client, spec, DOORS)
    assert seen.state == "SUCCEEDED"
    rows = by_system(seen)
    arms = ("identity@reader", "identity-again@reader", "no-context@reader")
    assert {name: len(found) for name, found in rows.items()} == dict.fromkeys(("short", *arms), 20)
    for arm in arms:
        assert all("ANCHOR" in row.marks and not row.alone for row in rows[arm])
    assert not any("ANCHOR" in row.marks for row in rows["short"])
    assert all(row.context_tokens_out == 0 for row in rows["no-context@reader"])
    said = notes(seen)
    # Which of the two comes first is not known.
    assert re.fullmatch(
        r"The reader, given identity twice, differed from itself in its score on 2 of 20 rows, in "
        r"its words on 2; mean difference [+-]0\.[01]00 \(95% CI -0\.\d{3} to \+0\.\d{3}\)\. "
        r"Differences below 0\.\d{3} on so many rows are within the noise of this model\.",
        said["NOISE_FLOOR"],
    )
    assert re.fullmatch(
        r"15\.0% \(95% CI 5\.2% to 36\.0%\) of 20 questions are answered without the context, "
        r"(90|95|100)\.0% with all of it \(a score of at least 0\.7\)\.",
        said["GUESSABLE"],
    )
    assert ranked(seen) == ["short"]
    progress = seen.finished.progress
    assert progress.completed_rows == progress.total_rows == 80
    assert {each.total_rows for each in progress.systems} == {20}
    assert config(client, seen)["roles"] == dict.fromkeys(arms, "anchor")


def test_what_a_system_of_the_run_gives_is_not_paid_for_again(
    client: BenchClient, server: ModelServer
) -> None:
    knowing(server)
    reader = {"base_url": server.url}
    once = run(client, {"systems": [{"builtin": "identity"}], "reader": reader}, DOORS)
    assert Counter(row.system for row in once.rows) == {
        "identity": 20,
        "identity-again@reader": 20,
        "no-context@reader": 20,
    }
    twice = {"systems": [{"builtin": "identity", "name": "whole"}], "reader": reader, "repeats": 2}
    seen = run(client, twice, DOORS)
    assert Counter(row.system for row in seen.rows) == {"whole": 40, "no-context@reader": 20}
    for each in (once, seen):
        assert "on 2 of 20 rows" in notes(each)["NOISE_FLOOR"]


def test_no_more_than_200_examples_are_chosen_by_the_seed(
    client: BenchClient, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert anchors.ANCHORED == 200
    monkeypatch.setattr(anchors, "ANCHORED", 6)
    knowing(server)
    spec = {"systems": [short(client)], "reader": {"base_url": server.url}, "seed": 5}
    rows = by_system(run(client, spec, DOORS))
    chosen = [{row.ordinal for row in rows[arm]} for arm in rows if arm != "short"]
    assert [len(each) for each in chosen] == [6] * 3
    assert chosen[0] == chosen[1] == chosen[2]
    assert max(chosen[0]) >= 6, "they are not just the first"
    assert len(rows["short"]) == 20


def test_long_contexts_are_read_less_often(
    client: BenchClient, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(anchors, "_MOST_TEXT", 500)
    monkeypatch.setattr(anchors, "_LEAST", 3)
    knowing(server)
    spec = {"systems": [short(client)], "reader": {"base_url": server.url}}
    rows = by_system(run(client, spec, DOORS))
    assert len(rows["identity@reader"]) == 3


def test_they_are_left_out_where_asked_and_where_nothing_was_read(
    client: BenchClient, server: ModelServer
) -> None:
    knowing(server)
    reader = {"base_url": server.url}
    off = run(client, {"systems": [short(client)], "reader": reader, "anchors": False}, DOORS)
    assert {row.system for row in off.rows} == {"short"}
    answers, _ = client.upload([{"id": each["id"], "response": "x"} for each in DOORS])
    answering = {"systems": [{"predictions": answers, "name": "answers"}], "reader": reader}
    asked = len(server.requests)
    seen = run(client, answering, DOORS)
    assert {row.system for row in seen.rows} == {"answers"}
    assert len(server.requests) == asked


def test_an_example_that_is_all_context_is_not_asked_without_it(
    client: BenchClient, server: ModelServer
) -> None:
    server.say("4")
    sums = [{"id": n, "context": f"What is {n} + {n}?", "answer": str(2 * n)} for n in range(5)]
    spec = {"systems": [{"builtin": "truncate-tail"}], "reader": {"base_url": server.url}}
    seen = run(client, spec, sums)
    assert {row.system for row in seen.rows} == {
        "truncate-tail",
        "identity@reader",
        "identity-again@reader",
    }
    assert "GUESSABLE" not in notes(seen)
    assert "on 0 of 5 rows" in notes(seen)["NOISE_FLOOR"]


def test_a_memory_run_has_the_whole_history_twice_and_none(
    client: BenchClient, server: ModelServer
) -> None:
    server.say("Solbakken")
    spec = {
        "systems": [{"builtin": "last-n"}],
        "datasets": [{"name": "mini-memory", "max_examples": 2}],
        "kind": "RUN_KIND_MEMORY",
        "reader": {"base_url": server.url},
    }
    seen = Followed()
    for event in client.evaluate(spec):
        seen.take(event)
    rows = by_system(seen)
    count = len(rows["last-n"])
    assert {name: len(found) for name, found in rows.items()} == dict.fromkeys(
        ("last-n", "full-history@reader", "full-history-again@reader", "no-context@reader"), count
    )
    whole = {row.ordinal: row.context_tokens_out for row in rows["full-history@reader"]}
    assert all(whole[row.ordinal] >= row.context_tokens_out for row in rows["last-n"])
    assert {row.context_tokens_out for row in rows["no-context@reader"]} == {0}
    said = notes(seen)
    assert "given full-history twice" in said["NOISE_FLOOR"]
    unanswerable = sum(row.primary_score == "abstention" for row in rows["last-n"])
    assert unanswerable
    assert f"of {count - unanswerable} questions" in said["GUESSABLE"]


def test_a_system_that_the_spec_calls_an_anchor_is_not_ranked(client: BenchClient) -> None:
    spec = {
        "systems": [{"builtin": "identity", "role": "SYSTEM_ROLE_ANCHOR"}, short(client)],
    }
    seen = run(client, spec, DOORS)
    rows = by_system(seen)
    assert all("ANCHOR" in row.marks for row in rows["identity"])
    assert ranked(seen) == ["short"]


def test_a_rescored_run_keeps_its_anchors_apart(client: BenchClient, server: ModelServer) -> None:
    knowing(server)
    spec = {"systems": [short(client)], "reader": {"base_url": server.url}}
    first = run(client, spec, DOORS)
    seen = Followed()
    for event in client.watch(client.rescore(first.finished.run_id).run_id):
        seen.take(event)
    assert notes(seen)["NOISE_FLOOR"] == notes(first)["NOISE_FLOOR"]
    assert ranked(seen) == ["short"]


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"anchors": True}, "this run has none"),
        (
            {
                "systems": [{"builtin": "identity", "name": "no-context@reader"}],
                "reader": {},
            },
            'a system is named "no-context@reader"',
        ),
    ],
)
def test_what_cannot_be_anchored_is_refused(
    client: BenchClient, server: ModelServer, fields: dict[str, Any], complaint: str
) -> None:
    if "reader" in fields:
        fields = {**fields, "reader": {"base_url": server.url}}
    spec = {"systems": [{"builtin": "identity"}], "datasets": [{"name": "mini-qa"}], **fields}
    with pytest.raises(Refused, match=complaint):
        client.start(spec)
