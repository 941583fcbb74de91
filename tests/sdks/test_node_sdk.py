"""The Node SDK: what only its README and its examples show. The rest is in test_every_sdk.py."""

from pathlib import Path

import pytest

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


def test_a_ratio_that_is_none_fails_every_row_by_name(tmp_path: Path) -> None:
    report = evaluate(
        "--launch",
        f"node {EXAMPLES / 'keyword-in-context.js'}",
        "--option",
        "ratio=7",
        "--dataset",
        "long-notes",
        "-n",
        "2",
        home=tmp_path,
        code=1,
    )
    messages = {row["failure"]["message"] for row in report["rows"]}
    assert messages == {"ratio is 7; it must be above 0 and at most 1"}
