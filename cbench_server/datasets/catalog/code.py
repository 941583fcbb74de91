"""Programming: write a function that passes its tests."""

from functools import partial

from cbench_server.datasets.hub.sources import Part, Row, by_config, each
from cbench_server.datasets.record import hub_dataset
from cbench_server.types import Example

_dataset = partial(
    hub_dataset,
    family="code",
    evaluators=("answer-quality", "code-execution"),
    primary_score="pass_at_1",
)


def _humaneval(row: Row, index: int) -> Example:
    return {
        "id": row["task_id"],
        "context": row["prompt"],
        "question": row["prompt"],
        "answer": row["canonical_solution"],
        "test": row["test"],
        "entry_point": row["entry_point"],
    }


HUMANEVAL = _dataset(
    "humaneval",
    Part(repository="openai/openai_humaneval", config="openai_humaneval"),
    each(_humaneval),
    default_config="openai_humaneval",
    description="Python functions to complete from their signature and docstring.",
    size=164,
    licence="MIT",
    citation="Chen et al. 2021, arXiv:2107.03374",
)


def _mbpp(row: Row, index: int) -> Example:
    # The sanitized config says `prompt` and has imports, the full one `text` and a setup.
    prompt = row.get("prompt") or row["text"]
    return {
        "id": row["task_id"],
        "context": prompt,
        "question": prompt,
        "answer": row["code"],
        "test_list": row["test_list"],
        "test_imports": row.get("test_imports") or [],
        "test_setup_code": row.get("test_setup_code") or "",
    }


MBPP = _dataset(
    "mbpp",
    by_config("google-research-datasets/mbpp", ("sanitized", "full"), "test"),
    each(_mbpp),
    default_config="sanitized",
    description="Short Python tasks in a sentence, with three assertions each.",
    size=257,
    licence="CC BY 4.0",
    citation="Austin et al. 2021, arXiv:2108.07732",
)

RECORDS = (HUMANEVAL, MBPP)
