"""Software engineering: issues of real repositories and the patches that closed them."""

from typing import Any

from cbench_server.datasets.hub.sources import Part, Row, each
from cbench_server.datasets.record import DatasetRecord, hub_dataset
from cbench_server.types import Example


def _swebench(row: Row, index: int) -> Example:
    return {
        "id": row["instance_id"],
        "context": f"Repository: {row['repo']}\n\nIssue:\n{row['problem_statement']}",
        "answer": row["patch"],
        "repo": row["repo"],
        "base_commit": row["base_commit"],
    }


def _record(name: str, repository: str, description: str, size: int, **more: Any) -> DatasetRecord:
    return hub_dataset(
        name,
        Part(repository=repository),
        each(_swebench),
        description=description,
        family="software",
        official=False,
        size=size,
        licence="MIT; issues and patches under each project's licence",
        citation="Jimenez et al. 2024, arXiv:2310.06770",
        **more,
    )


SWEBENCH = _record(
    "swebench",
    "princeton-nlp/SWE-bench",
    "Issues of twelve Python projects; scored on the patch's text, not by running tests.",
    2294,
)
SWEBENCH_VERIFIED = _record(
    "swebench-verified",
    "princeton-nlp/SWE-bench_Verified",
    "The SWE-bench issues that people found solvable; scored on the patch's text.",
    500,
)
SWEBENCH_LITE = _record(
    "swebench-lite",
    "princeton-nlp/SWE-bench_Lite",
    "The smaller SWE-bench issues; scored on the patch's text.",
    300,
    aliases=("swe-agent-traces",),
)

RECORDS = (SWEBENCH, SWEBENCH_VERIFIED, SWEBENCH_LITE)
