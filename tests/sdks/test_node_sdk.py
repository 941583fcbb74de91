"""The Node SDK: what only its README and its examples show. The rest is in test_every_sdk.py."""

from pathlib import Path

import pytest

from tests.fixtures.preloaded import CBENCH
from tests.fixtures.sdks import NODE, built, run
from tests.sdks.toolchain import evaluate, fences

EXAMPLES = NODE.examples


@pytest.fixture(autouse=True)
def is_built() -> None:
    """Build it first."""
    built(NODE)


def test_every_program_of_the_readme_can_be_parsed(tmp_path: Path) -> None:
    for number, program in enumerate(fences(NODE.readme, "js")):
        path = tmp_path / f"{number}.mjs"
        path.write_text(program)
        run("node", "--check", path)


def test_every_example_is_tested() -> None:
    tested = "attached follow-a-run hello-evaluator hello-memory hello-system keyword-in-context"
    assert {path.stem for path in EXAMPLES.iterdir()} == set(tested.split())


def test_the_extractor_keeps_the_answers_in_a_fifth_of_the_words(tmp_path: Path) -> None:
    report = evaluate(
        "--launch",
        f"node {EXAMPLES / 'keyword-in-context.js'}",
        "--option",
        "ratio=0.2",
        "--dataset",
        "long-notes",
        home=tmp_path,
    )
    summary = report["summary"]["keyword-in-context"]
    assert report["failed_rows"] == 0
    assert summary["mean_score"] > 0.9
    assert summary["context_compression"] > 0.75


def test_a_ratio_that_is_none_is_refused_before_the_run(tmp_path: Path) -> None:
    program = f"node {EXAMPLES / 'keyword-in-context.js'}"
    line = f"{CBENCH} run --launch '{program}' --option ratio=7 --dataset long-notes -n 2 2>&1"
    said = run("sh", "-c", line, code=2, CBENCH_HOME=str(tmp_path))
    # The program's own lines may stand before it, as they come.
    refusal = 'cbench: system "keyword-in-context": option "ratio": 7.0 is above 1'
    assert said.splitlines()[-1] == refusal
