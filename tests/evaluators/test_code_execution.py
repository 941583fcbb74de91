"""The evaluator around the sandbox: what it reads, gives and refuses."""

import asyncio
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cbench_client import RemoteEvaluator
from cbench_server.errors import EvaluatorBroken, InvalidInput
from cbench_server.evaluators import CodeExecution
from cbench_server.evaluators.code_execution import pass_at_k
from cbench_server.scoring.placement import Scoring
from cbench_server.types import Evaluator

SHARED = Path(__file__).resolve().parents[3] / "shared"
HUMANEVAL = SHARED / "data/hub/openai/openai_humaneval/openai_humaneval/test.jsonl"
MBPP = SHARED / "data/hub/google-research-datasets/mbpp"
EXAMPLES = SHARED / "sandbox/examples.jsonl"

ADD = {
    "context": "def add(a, b):\n",
    "test": "def check(c):\n    assert c(1,2)==3\n",
    "entry_point": "add",
}
RIGHT, WRONG = "    return a + b\n", "    return a - b\n"


def lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        pytest.skip("needs the data in ../shared")
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_example_of_the_seeds() -> None:
    assert CodeExecution(timeout=10.0).score(ADD, {"response": RIGHT}) == {"pass_at_1": 1.0}


def test_it_is_an_evaluator() -> None:
    assert isinstance(CodeExecution(), Evaluator)


@pytest.mark.parametrize("original", [{}, {"answer": "x"}, {"context": "x"}, {"test": None}])
def test_an_example_that_is_no_code_task_gives_no_score(original: dict[str, Any]) -> None:
    assert CodeExecution().score(original, {"response": RIGHT}) == {}
    assert asyncio.run(CodeExecution().assess(original, {"response": RIGHT})).scores == {}


@pytest.mark.parametrize(
    "original",
    [
        {**ADD, "test": ""},
        {**ADD, "test": "def check(candidate):\n    pass\n"},
        {**ADD, "test": "this is no python"},
        {"test_list": []},
        {"test_list": [], "test_setup_code": ""},
        {"test": None, "entry_point": "add", "context": "def add(a, b):\n"},
        {"test_list": ["assert True"]},
    ],
)
def test_without_a_test_that_calls_it_nothing_passes(original: dict[str, Any]) -> None:
    assert CodeExecution().score(original, {"response": RIGHT}) == {"pass_at_1": 0.0}


@pytest.mark.parametrize("processed", [{}, {"response": None}, {"response": " \n"}])
def test_no_response_is_an_empty_one(processed: dict[str, Any]) -> None:
    assert CodeExecution().score(ADD, processed) == {"pass_at_1": 0.0}


def test_thinking_is_left_out_unless_wanted() -> None:
    response = {"response": f"<think>hm</think>```python\ndef add(a, b):\n{RIGHT}```"}
    thought = {"response": f"<think>\n```python\ndef add(a, b):\n{RIGHT}```\n</think>I give up."}
    assert CodeExecution().score(ADD, response) == {"pass_at_1": 1.0}
    assert CodeExecution().score(ADD, thought) == {"pass_at_1": 0.0}
    assert CodeExecution(strip_thinking=False).score(ADD, thought) == {"pass_at_1": 1.0}


async def test_details_say_how_it_was_run_and_what_was_printed() -> None:
    response = "    print('sum', a, b)\n    return a - b\n"
    said = await CodeExecution(timeout=9).assess(ADD, {"response": response})
    details = said.details
    assert said.scores == {"pass_at_1": 0.0}
    assert (details["reason"], details["message"]) == ("wrong_answer", "AssertionError: ")
    assert details["output"] == "sum 1 2\n"
    assert details["sandbox_tier"] in ("namespaces", "landlock")
    assert details["filesystem"] in ("private", "host-readonly")
    assert (details["network"], details["integrity"]) == ("none", "split")
    assert details["limits"] == {"timeout_s": 9.0, "memory_mb": 1024, "disk_mb": 64}


async def test_a_test_that_asks_the_candidate_about_itself_is_only_partly_sound() -> None:
    original = {"test_list": ["assert isinstance(P(), P)"]}
    said = await CodeExecution().assess(original, {"response": "class P:\n    pass\n"})
    assert (said.scores["pass_at_1"], said.details["integrity"]) == (1.0, "partial")


async def test_without_isolation_integrity_is_only_nominal() -> None:
    said = await CodeExecution(sandbox="off").assess(ADD, {"response": RIGHT})
    assert said.scores == {"pass_at_1": 1.0}
    assert said.details["sandbox_tier"] == "process"
    assert (said.details["network"], said.details["integrity"]) == ("open", "nominal")


@pytest.mark.parametrize(
    ("samples", "passed", "k", "expected"),
    [(1, 1, 1, 1.0), (1, 0, 1, 0.0), (10, 3, 1, 0.3), (10, 3, 5, 1 - 21 / 252), (5, 1, 5, 1.0)],
)
def test_pass_at_k_is_the_unbiased_estimate(
    samples: int, passed: int, k: int, expected: float
) -> None:
    assert pass_at_k(samples, passed, k) == pytest.approx(expected)


def test_several_responses_give_their_share_and_more() -> None:
    processed = {"responses": [RIGHT, WRONG, RIGHT, "", WRONG]}
    expected = {"pass_at_1": pytest.approx(0.4), "pass_at_5": 1.0}
    assert CodeExecution().score(ADD, processed) == expected
    said = asyncio.run(CodeExecution().assess(ADD, processed))
    assert said.scores == expected
    assert [run["passed"] for run in said.details["runs"]] == [True, False, True, False, False]


@pytest.mark.parametrize(
    "options", [{"sandbox": "none"}, {"timeout": 0}, {"timeout": -1}, {"timeout": float("inf")}]
)
def test_bad_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        CodeExecution(**options)


def test_it_can_be_called_from_several_threads_at_once() -> None:
    evaluator = CodeExecution()
    responses = [RIGHT, WRONG, "    while True:\n        pass\n", RIGHT] * 3
    given: dict[int, dict[str, float]] = {}

    def run(index: int) -> None:
        mine = evaluator if index % 4 != 2 else CodeExecution(timeout=0.5)
        given[index] = mine.score(ADD, {"response": responses[index]})

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(responses))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = [float(response is RIGHT) for response in responses]
    assert [given[index]["pass_at_1"] for index in range(len(responses))] == expected


async def test_score_works_inside_an_event_loop() -> None:
    assert CodeExecution().score(ADD, {"response": RIGHT}) == {"pass_at_1": 1.0}


async def test_many_run_at_once_in_a_run() -> None:
    scoring, evaluator = Scoring(), CodeExecution()
    responses = [RIGHT, WRONG] * 20
    rows = await asyncio.gather(
        *(scoring.score_row([evaluator], ADD, {"response": response}) for response in responses)
    )
    assert [row.scores["pass_at_1"] for row in rows] == [1.0, 0.0] * 20
    await scoring.close()


async def test_a_sandbox_that_cannot_start_is_our_failure() -> None:
    class NoSandbox(CodeExecution):
        """As on a machine that offers neither namespaces nor Landlock."""

        def __init__(self) -> None:
            super().__init__()
            from cbench_server.sandbox.client import Sandbox
            from cbench_server.sandbox.tiers import NAMESPACES

            self._sandbox = Sandbox((NAMESPACES._replace(name="external"),))

    assert NoSandbox().score(ADD, {"response": RIGHT}) == {}
    with pytest.raises(EvaluatorBroken, match="best-effort"):
        await NoSandbox().assess(ADD, {"response": RIGHT})


def test_import_service_and_command_line_agree(daemon_address: str, tmp_path: Path) -> None:
    original, processed = tmp_path / "original.json", tmp_path / "processed.json"
    original.write_text(json.dumps(ADD))
    for response, expected in ((RIGHT, 1.0), (WRONG, 0.0)):
        processed.write_text(json.dumps({"response": response}))
        command = [Path(sys.executable).parent / "cbench", "score", "--evaluator", "code-execution"]
        printed = subprocess.run(
            [*command, "--server", daemon_address, original, processed],
            capture_output=True,
            check=True,
        ).stdout
        given = [
            CodeExecution().score(ADD, {"response": response}),
            RemoteEvaluator(daemon_address, "code-execution").score(ADD, {"response": response}),
            json.loads(printed),
        ]
        assert given == [{"pass_at_1": expected}] * 3


fields = st.sampled_from(
    ["test", "test_list", "entry_point", "context", "test_setup_code", "test_imports", "response"]
)
anything = st.none() | st.integers() | st.text(max_size=20) | st.lists(st.text(max_size=9))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(fields, anything), st.dictionaries(fields, anything))
def test_any_pair_scores_within_range_or_not_at_all(
    original: dict[str, Any], processed: dict[str, Any]
) -> None:
    scores = CodeExecution(timeout=2.0).score(original, processed)
    assert all(0.0 <= value <= 1.0 for value in scores.values())
    assert scores == CodeExecution(timeout=2.0).score(original, processed)


def fill_in(value: Any) -> Any:
    """Put something in place of a case's placeholders."""
    text = json.dumps(value)
    for name, filling in {"TAG": "t4g", "SECRET": "s3cret", "CANARY_DIR": "/nowhere"}.items():
        text = text.replace(f"{{{{{name}}}}}", filling)
    return json.loads(text.replace("{{TCP_PORT}}", "9"))


def test_the_shared_examples_score_as_they_should() -> None:
    for case in map(fill_in, lines(EXAMPLES)):
        given = CodeExecution(timeout=3.0).score(case["original"], {"response": case["response"]})
        assert given == case["expect"], case["id"]


async def score_all(pairs: list[tuple[dict[str, Any], str]]) -> list[float]:
    evaluator, permits = CodeExecution(timeout=60.0), asyncio.Semaphore(4)

    async def one(original: dict[str, Any], response: str) -> float:
        async with permits:
            return (await evaluator.assess(original, {"response": response})).scores["pass_at_1"]

    return await asyncio.gather(*(one(*pair) for pair in pairs))


def humaneval() -> list[tuple[dict[str, Any], str]]:
    return [
        (
            {"context": row["prompt"], "test": row["test"], "entry_point": row["entry_point"]},
            row["canonical_solution"],
        )
        for row in lines(HUMANEVAL)
    ]


async def test_every_humaneval_solution_passes_and_none_of_them_broken() -> None:
    right = humaneval()
    assert await score_all(right) == [1.0] * 164
    fenced = [
        (original, f"Sure!\n\n```python\n{original['context']}{code}\n```\n")
        for original, code in right
    ]
    assert await score_all(fenced) == [1.0] * 164
    nothing = [(original, "    return None\n") for original, _ in right]
    assert await score_all(nothing) == [0.0] * 164
    liar = (
        "    class E:\n        __eq__ = __lt__ = __gt__ = lambda *a: True\n"
        "        __sub__ = __abs__ = __hash__ = lambda *a: 0\n    return E()\n"
    )
    assert await score_all([(original, liar) for original, _ in right]) == [0.0] * 164


@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", ["full/test", "sanitized/test"])
async def test_every_mbpp_reference_passes_and_none_of_them_broken(part: str) -> None:
    rows = lines(MBPP / f"{part}.jsonl")
    fields = ("test_list", "test_setup_code", "test_imports")
    originals = [{field: row[field] for field in fields if field in row} for row in rows]
    right = [(original, row["code"]) for original, row in zip(originals, rows, strict=True)]
    assert await score_all(right) == [1.0] * len(rows)
    broken = [
        (original, row["code"].replace("return", "return None and"))
        for original, row in zip(originals, rows, strict=True)
    ]
    assert sum(await score_all(broken)) <= 0.02 * len(rows)
