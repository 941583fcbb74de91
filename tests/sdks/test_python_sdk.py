"""The Python SDK: what only its examples show. The rest is in test_every_sdk.py."""

import sys
from pathlib import Path

import pytest

from tests.fixtures.sdks import PYTHON_SDK
from tests.sdks.toolchain import evaluate

EXAMPLES = PYTHON_SDK.examples


@pytest.mark.parametrize("ratio", [0.05, 0.3])
def test_the_summariser_keeps_the_answers_within_its_budget(ratio: float, tmp_path: Path) -> None:
    launch = f"{sys.executable} {EXAMPLES / 'lexrank.py'}"
    report = evaluate(
        "--launch",
        launch,
        "--option",
        f"ratio={ratio}",
        "--dataset",
        "long-notes",
        home=tmp_path,
    )
    summary = report["summary"]["python-lexrank"]
    assert report["failed_rows"] == 0
    assert summary["mean_score"] >= 0.9
    assert summary["context_compression"] > 0.95 * (1 - ratio)


def test_an_option_that_is_no_share_fails_every_row_by_name(tmp_path: Path) -> None:
    report = evaluate(
        "--launch",
        f"{sys.executable} {EXAMPLES / 'lexrank.py'}",
        "--option",
        "bias=7",
        "--dataset",
        "long-notes",
        "-n",
        "2",
        home=tmp_path,
        code=1,
    )
    messages = {row["failure"]["message"] for row in report["rows"]}
    assert messages == {"bias is 7; it must be a number from 0 to 1"}
