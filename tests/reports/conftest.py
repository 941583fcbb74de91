"""A fixed run with everything a report may have to show, and a browser to show it in."""

from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest
from selenium.webdriver import Chrome

from cbench_server.results import EvalRow, Failure
from cbench_server.spec import DatasetRef, Run, RunSpec, RunState, SystemProgress, SystemRef
from tests.reports.browsing import Page, start_chromium


@pytest.fixture
def run() -> Run:
    """Two systems, one of which failed on a row, and a dataset without its official metric."""
    return Run(
        run_id="20260131-120000-000abcdef",
        spec=RunSpec(
            systems=(SystemRef(target="localhost:50061"), SystemRef(builtin="identity")),
            datasets=(DatasetRef("mini-qa"), DatasetRef("long|notes", config="b")),
            labels={"branch": "main"},
        ),
        state=RunState.SUCCEEDED,
        create_time=1769860800.0,
        end_time=1769860863.5,
        total_rows=6,
        systems=("go-truncate|v2", "identity"),
        progress={
            "go-truncate|v2": SystemProgress(completed=3, failed=1),
            "identity": SystemProgress(completed=3),
        },
        summary={
            "go-truncate|v2": {
                "num_scored": 2.0,
                "num_failed": 1.0,
                "mean_score": 0.75,
                "mean_score_with_failures": 0.5,
                "mean_score_with_failures_stderr": 0.125,
                "mean_score_with_failures_ci_low": 0.25,
                "mean_score_with_failures_ci_high": 0.75,
                "pass_rate": 0.5,
                "context_compression": 0.494,
                "compression_ratio": 0.25,
                "mean_context_tokens_in": 1200.0,
                "mean_context_tokens_out": 607.2,
                "mean_input_tokens": 1234.5,
                "mean_output_tokens": 926.0,
                "latency_median": 0.0123,
                "latency_p95": 1.25,
                "cost_of_pass": float("inf"),
                "dataset:mini-qa": 1.0,
                "dataset:long|notes:b": 0.5,
            },
            "identity": {
                "num_scored": 3.0,
                "num_failed": 0.0,
                "mean_score": 0.25,
                "mean_score_with_failures": 0.25,
                "pass_rate": 0.0,
                "context_compression": 0.0,
                "compression_ratio": 0.0,
                "mean_context_tokens_in": 1200.0,
                "mean_context_tokens_out": 1200.0,
                "mean_input_tokens": 1234.5,
                "mean_output_tokens": 1234.5,
                "latency_median": 0.0000042,
                "latency_p95": 0.00981,
                "cost_of_pass": None,
                "dataset:mini-qa": 0.25,
                "dataset:long|notes:b": None,
            },
        },
        timing={"go-truncate|v2": 3.456, "identity": 0.5},
        config={
            "datasets": [
                {"label": "mini-qa", "primary_score": "f1", "is_official_metric": True},
                {"label": "long|notes:b", "primary_score": "f1", "is_official_metric": False},
            ]
        },
    )


@pytest.fixture
def rows() -> list[EvalRow]:
    """Rows that differ in their scores, one of them failed, ids of both types."""
    return [
        EvalRow(
            system="go-truncate|v2",
            example_id='a, "quoted"',
            scores={"f1": 1.0, "contains": 1.0},
            input_tokens=100,
            output_tokens=50,
            context_tokens_in=90,
            context_tokens_out=40,
            latency=0.0123,
            dataset="mini-qa",
            primary_score="f1",
        ),
        EvalRow(
            system="go-truncate|v2",
            example_id=2,
            scores={},
            input_tokens=100,
            output_tokens=0,
            latency=60.0,
            dataset="mini-qa",
            index=1,
            ordinal=1,
            attempts=3,
            failure=Failure("system", "DEADLINE_EXCEEDED", "=HYPERLINK(1)\nno answer", 3),
        ),
        EvalRow(
            system="identity",
            example_id=2,
            scores={"f1": float("nan"), "answer_retained": 0.5},
            input_tokens=100,
            output_tokens=100,
            dataset="mini-qa",
            index=1,
            ordinal=1,
            primary_score="answer_retained",
        ),
    ]


@pytest.fixture(scope="session")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """One Chromium for all tests of the page."""
    binary = which("chromium") or which("google-chrome")
    driver = which("chromedriver")
    if not binary or not driver:
        pytest.skip("chromium and chromedriver are not installed")
    browser = start_chromium(binary, driver, tmp_path_factory.mktemp("profile"))
    yield browser
    browser.quit()


@pytest.fixture
def page(chrome: Chrome, tmp_path: Path) -> Page:
    """Reports open in it."""
    return Page(chrome, tmp_path)
