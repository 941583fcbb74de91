"""SWE-bench: patches out to the harness, its report back in."""

import json
from pathlib import Path
from typing import Any

import pytest

from cbench_client import Server
from cbench_server.datasets.readers.harness_report import harness_report
from cbench_server.reports.swebench import patch_of
from tests.datasets.test_records import FIXTURES
from tests.datasets.test_runs import cbench

__all__ = ["cbench"]

_DIFF = "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n+y\n"


class _Fixer:
    name = "fixer"

    def process(self, example: dict[str, object]) -> dict[str, object]:
        return {**example, "response": f"```diff\n{_DIFF}```"}


@pytest.mark.parametrize(
    ("response", "patch"),
    [
        (_DIFF, _DIFF),
        (f"Here it is:\n{_DIFF}", _DIFF),
        (f"Here:\n```diff\n{_DIFF}```\nDone.", _DIFF),
        (f"<patch>\n{_DIFF}</patch>", _DIFF),
        (f"<patch>\n```diff\n{_DIFF}```\n</patch>", _DIFF),
        ("I cannot.", ""),
        ("", ""),
    ],
    ids=["bare", "after words", "fenced", "tagged", "both", "none", "empty"],
)
def test_the_patch_is_found_in_a_response(response: str, patch: str) -> None:
    assert patch_of(response) == patch


def test_patches_go_to_the_harness_and_its_report_comes_back(cbench, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    with Server([_Fixer()]) as server:
        run = cbench(
            *("run", "--system", server.address, "--dataset", "swebench", "--data-dir", FIXTURES)
        )
    assert run.returncode == 0, run.stderr
    assert "external" in run.stdout
    out = tmp_path / "predictions.jsonl"
    exported = cbench("export", "last", "--format", "swebench", "-o", out)
    assert exported.returncode == 0, exported.stderr
    (line,) = map(json.loads, out.read_text().splitlines())
    assert line["model_name_or_path"] == "fixer"
    assert line["model_patch"] == _DIFF
    report = tmp_path / "fixer.mine.json"
    ids = [line["instance_id"]]
    report.write_text(json.dumps(_report(ids, resolved=ids), indent=4))
    rescored = cbench("rescore", "last", "--references", report)
    assert rescored.returncode == 0, rescored.stderr
    assert "swebench_resolved" in rescored.stdout


def _report(ids: list[str], *, resolved: list[str]) -> dict[str, Any]:
    """A report in the shape that swebench/harness/reporting.py writes, schema 2."""
    others = [each for each in ids if each not in resolved]
    return {
        "total_instances": 500,
        "submitted_instances": len(ids),
        "completed_instances": len(ids),
        "resolved_instances": len(resolved),
        "unresolved_instances": len(others),
        "infra_failure_instances": 0,
        "ambiguous_failure_instances": 0,
        "empty_patch_instances": 0,
        "error_instances": 0,
        "completed_ids": ids,
        "incomplete_ids": ["never__run-1"],
        "empty_patch_ids": [],
        "submitted_ids": ids,
        "resolved_ids": resolved,
        "unresolved_ids": others,
        "infra_failure_ids": [],
        "ambiguous_failure_ids": [],
        "failure_reasons": {},
        "error_ids": [],
        "schema_version": 2,
    }


@pytest.mark.parametrize(
    ("report", "found"),
    [
        (_report(["a", "b"], resolved=["b"]), {"a": False, "b": True}),
        ({"a": {"resolved": True, "patch_exists": True, "tests_status": {}}}, {"a": True}),
        ({}, None),
        ({"submitted_ids": ["a"]}, None),
        ([{"id": "a", "resolved": True}], None),
    ],
    ids=["run", "issue", "empty", "half", "rows"],
)
def test_a_report_of_the_harness_is_read(
    tmp_path: Path, report: Any, found: dict[str, bool] | None
) -> None:
    file = tmp_path / "report.json"
    file.write_text(json.dumps(report))
    rows = harness_report(file)
    assert (rows and {row["id"]: row["resolved"] for row in rows}) == found


def test_runs_of_other_datasets_are_refused_by_every_harness(cbench) -> None:  # type: ignore[no-untyped-def]
    run = cbench("run", "--builtin", "identity", "--dataset", "mini-qa")
    assert run.returncode == 0, run.stderr
    for name, wanted in (
        ("swebench", "takes answers to swebench or swebench-verified or swebench-lite"),
        ("alpaca-eval", "takes answers to alpaca-eval"),
        ("mt-bench", "takes answers to mt-bench"),
    ):
        refused = cbench("export", "last", "--format", name)
        assert refused.returncode == 2
        assert f"{wanted}, and this run has those to mini-qa" in refused.stderr
        assert refused.stdout == ""
