"""Doors to a score: the same pair gets the same one by import, RPC, command, run and rescoring."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cbench_client import BenchClient, Server, row_to_dict
from cbench_server import evaluate
from cbench_server.contract import info_of
from cbench_server.daemon.embedded import embedded
from cbench_server.evaluators import EVALUATORS
from cbench_server.registry import registry
from tests.fixtures import preloaded

NAMES = [name for name in EVALUATORS if not info_of(EVALUATORS[name]).asks_model]
ORIGINALS: list[dict[str, Any]] = [
    {
        "answer": "Paris",
        "correct_letter": "A",
        "choices": ["Paris", "Rome"],
        "label": "entailment",
        "instruction_id_list": ["punctuation:no_comma"],
        "kwargs": [{}],
        "test": "assert f() == 1",
        "entry_point": "f",
        "best_answer": "Paris",
        "correct_answers": ["Paris"],
        "incorrect_answers": ["Rome"],
    },
    {"answers": ["7", "seven"], "label": "neutral", "correct_letter": "B", "choices": ["6", "7"]},
    {"answer": "", "answers": None},
    {"answer": ["Rome", "Roma"], "is_abstention": True},
]
PROCESSED: list[dict[str, Any]] = [
    {"response": "Paris"},
    {"response": "The answer is B, \\boxed{7}"},
    {"response": "I do not know."},
    {"response": ""},
    {"context": "Paris is nice."},
    {"context": "Rome", "response": None},
    {"context": "Rome", "response": "Roma"},
    {"response": "def f():\n    return 1"},
    {},
]
PAIRS = [
    ({"id": f"{a}-{b}", "question": "Which?", "context": "Paris and Roma, 7.", **original}, given)
    for a, original in enumerate(ORIGINALS)
    for b, given in enumerate(PROCESSED)
]


# What some read beside the rest, which would be wrong for others.
OWN: dict[str, dict[str, Any]] = {
    "longbench": {"task": "hotpotqa"},
    "infinitebench": {"task": "longbook_qa_eng"},
    "locomo": {"category": 4},
    "evidence-recall": {"evidence": ["Paris"]},
    "swebench": {"resolved": True},
    "alpaca-eval": {"preference": 1.75, "glm_preference": 0.6},
    "bfcl": {
        "ground_truth": [{"get": {"city": ["Paris"]}}],
        "tools": [{"name": "get", "parameters": {"type": "dict", "properties": {}}}],
    },
}


class Replays:
    """Returns for each example what the test has for it."""

    name = "replays"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return dict(next(given for original, given in PAIRS if original["id"] == example["id"]))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("doors")


@pytest.fixture(scope="module")
def client(home: Path) -> Iterator[BenchClient]:
    with embedded(home=str(home), sandbox="off") as target, BenchClient(target) as connected:
        yield connected


def plain(scores: Any) -> dict[str, Any]:
    return {name: pytest.approx(value) for name, value in dict(scores).items()}


@pytest.mark.parametrize("name", NAMES)
def test_a_pair_has_one_score_whichever_door_it_comes_by(name: str, client: BenchClient) -> None:
    options = {"sandbox": "off"} if info_of(EVALUATORS[name]).runs_programs else {}
    evaluator = registry.create_evaluator(name, options)
    pairs = [({**original, **OWN.get(name, {})}, given) for original, given in PAIRS]
    direct = [evaluator.score(original, given) for original, given in pairs]
    assert any(direct), "a test of nothing"
    asked = [client.score(name, original, given, options).scores for original, given in pairs]
    assert [dict(each) for each in asked] == [plain(each) for each in direct]
    result = evaluate(
        [Replays()], [original for original, _ in pairs], [evaluator], [], progress=False
    )
    assert [row.failure for row in result.rows] == [None] * len(PAIRS)
    assert [row.scores for row in result.rows] == [plain(each) for each in direct]


def test_a_run_and_its_rescoring_agree_with_the_import(client: BenchClient) -> None:
    names = [name for name in NAMES if not info_of(EVALUATORS[name]).runs_programs]
    digest, _ = client.upload([original for original, _ in PAIRS])
    with Server(Replays()) as served:
        spec = {
            "systems": [{"target": served.address}],
            "datasets": [{"name": "pairs", "upload": digest}],
            "evaluators": [{"name": name} for name in names],
            "replace_evaluators": True,
        }
        *_, last = client.evaluate(spec)
    rows = [row_to_dict(row) for row in client.rows(last.finished.run_id)]
    child = client.rescore(last.finished.run_id, [{"name": name} for name in names])
    for _ in client.watch(child.run_id, include_rows=False):
        pass
    again = [row_to_dict(row) for row in client.rows(child.run_id)]
    for (original, given), row, rescored in zip(PAIRS, rows, again, strict=True):
        wanted: dict[str, float] = {}
        for name in names:
            wanted.update(registry.create_evaluator(name, {}).score(original, given))
        assert row["scores"] == rescored["scores"] == plain(wanted), original["id"]


def test_the_command_takes_several_evaluators_and_agrees(home: Path, tmp_path: Path) -> None:
    original, given = PAIRS[0]
    for name, example in (("original", original), ("processed", given)):
        (tmp_path / f"{name}.json").write_text(json.dumps(example))
    names = ["answer-quality", "multiple-choice"]
    words = [word for name in names for word in ("--evaluator", name)]
    finished = preloaded.run(
        [preloaded.CBENCH, "score", *words, "original.json", "processed.json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "CBENCH_HOME": str(home)},
    )
    wanted: dict[str, float] = {}
    for name in names:
        wanted.update(registry.create_evaluator(name, {}).score(original, given))
    assert json.loads(finished.stdout) == plain(wanted)
