"""Predictions for the harness of SWE-bench: one patch a line, as it reads them."""

import json
import re
from collections.abc import Iterator

from cbench_server.reports.harness import only_system
from cbench_server.reports.report import Report

_DATASETS = ("swebench", "swebench-verified", "swebench-lite")
_FENCE = re.compile(r"```(?:diff|patch)[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL)
_TAG = re.compile(r"<patch>\s*(.*?)\s*(?:</patch>|\Z)", re.DOTALL)
_START = re.compile(r"^(?:diff --git |--- a/)", re.MULTILINE)


def to_swebench(report: Report) -> Iterator[str]:
    """Write `instance_id`, `model_name_or_path` and `model_patch` for each row.

    A row that failed has an empty patch, which the harness counts as not resolved.
    """
    system = only_system(report, "the harness of SWE-bench", _DATASETS)
    for row, _ in report.full_rows(system):
        response = (row.processed or {}).get("response")
        line = {
            "instance_id": row.example_id,
            "model_name_or_path": system,
            "model_patch": patch_of("" if response is None else str(response)),
        }
        yield json.dumps(line, ensure_ascii=False) + "\n"


def patch_of(response: str) -> str:
    """Return the patch in a response: fenced, tagged, or from where one begins; else nothing."""
    for pattern in (_TAG, _FENCE):
        if found := pattern.search(response):
            inner = _FENCE.search(found[1])
            return _ended(inner[1] if inner else found[1])
    begins = _START.search(response)
    return _ended(response[begins.start() :]) if begins else ""


def _ended(patch: str) -> str:
    return patch if patch.endswith("\n") or not patch else f"{patch}\n"
