"""Software engineering: issues of real repositories and the patches that closed them."""

from collections.abc import Iterator
from typing import Any

from cbench_server.datasets.hub.sources import Part, Row, each
from cbench_server.datasets.protocol import SAME, DatasetProtocol, differs, external, uses
from cbench_server.datasets.record import DatasetRecord, hub_dataset
from cbench_server.types import Example

_TEXTS = ("oracle", "bm25_13K")
"""Configs whose context is the issue with code of the repository, to be compressed."""


def _swebench(row: Row, index: int) -> Example:
    example = {
        "id": row["instance_id"],
        "context": row.get("text")
        or f"Repository: {row['repo']}\n\nIssue:\n{row['problem_statement']}",
        "answer": row["patch"],
        "repo": row["repo"],
        "base_commit": row["base_commit"],
    }
    if row.get("text"):
        example["evidence"] = [*dict.fromkeys(_changed(row["patch"], row["text"]))]
    return example


def _changed(patch: str, text: str) -> Iterator[str]:
    """Yield the lines that a patch takes out and the text has: those nobody could do without."""
    for line in patch.splitlines():
        if line.startswith("-") and not line.startswith("---"):
            kept = line[1:].strip()
            if len(kept) > 1 and kept in text:
                yield kept


def _protocol(config: str) -> DatasetProtocol:
    return DatasetProtocol(
        follows="SWE-bench/SWE-bench, swebench.harness.run_evaluation",
        shown=("context", "repo", "base_commit"),
        withheld=("answer", "evidence") if config else ("answer",),
        extraction="The patch in the response, which the harness applies.",
        evaluators=uses("answer-quality", *(("evidence-recall",) if config else ())),
        primary_score="",
        data=SAME
        if config
        else differs("The issue is shown without the repository's code, in which agents work."),
        metric=external("Only the harness can run the tests: cbench export --format swebench."),
        aggregation=external("The share of resolved issues is in the harness's report."),
    )


def _record(
    name: str,
    repository: str,
    description: str,
    size: int,
    texts: tuple[str, ...] = (),
    **more: Any,
) -> DatasetRecord:
    return hub_dataset(
        name,
        {
            "": (Part(repository=repository),),
            **{text: (Part(repository=f"{repository}_{text}"),) for text in texts},
        },
        each(_swebench),
        protocol=_protocol,
        description=description,
        family="software",
        size=size,
        licence="MIT; issues and patches under each project's licence",
        citation="Jimenez et al. 2024, arXiv:2310.06770",
        **more,
    )


SWEBENCH = _record(
    "swebench",
    "princeton-nlp/SWE-bench",
    "Issues of twelve Python projects; patches are tested by the official harness.",
    2294,
    _TEXTS,
)
SWEBENCH_VERIFIED = _record(
    "swebench-verified",
    "princeton-nlp/SWE-bench_Verified",
    "The SWE-bench issues that people found solvable; tested by the harness.",
    500,
)
SWEBENCH_LITE = _record(
    "swebench-lite",
    "princeton-nlp/SWE-bench_Lite",
    "The smaller SWE-bench issues; tested by the official harness.",
    300,
    _TEXTS,
    aliases=("swe-agent-traces",),
)

RECORDS = (SWEBENCH, SWEBENCH_VERIFIED, SWEBENCH_LITE)
