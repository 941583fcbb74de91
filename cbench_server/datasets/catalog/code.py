"""Programming: write a function that passes its tests."""

from cbench_server.datasets.hub.sources import Part, Row, by_config, each
from cbench_server.datasets.protocol import SAME, DatasetProtocol, differs, uses
from cbench_server.datasets.record import hub_dataset
from cbench_server.types import Example


def _humaneval(row: Row, index: int) -> Example:
    return {
        "id": row["task_id"],
        "context": row["prompt"],
        "answer": row["canonical_solution"],
        "test": row["test"],
        "entry_point": row["entry_point"],
    }


HUMANEVAL = hub_dataset(
    "humaneval",
    Part(repository="openai/openai_humaneval", config="openai_humaneval"),
    each(_humaneval),
    default_config="openai_humaneval",
    family="code",
    protocol=DatasetProtocol(
        follows="openai/human-eval, human_eval/execution.py (pass@1)",
        shown=("context", "entry_point"),
        withheld=("answer", "test"),
        extraction="The program in the response, after the prompt where it has no signature.",
        evaluators=uses("answer-quality", "code-execution"),
        primary_score="pass_at_1",
    ),
    description="Python functions to complete from their signature and docstring.",
    size=164,
    licence="MIT",
    citation="Chen et al. 2021, arXiv:2107.03374",
)


def _mbpp(row: Row, index: int) -> Example:
    # The sanitized config says `prompt` and has imports, the full one `text` and a setup.
    # The tests are part of the task: without them nobody knows what the function is called.
    tests = "\n".join(row["test_list"])
    prompt = f"{row.get('prompt') or row['text']}\n\nThese assertions must hold:\n\n{tests}"
    return {
        "id": row["task_id"],
        "context": prompt,
        "answer": row["code"],
        "test_list": row["test_list"],
        "test_imports": row.get("test_imports") or [],
        "test_setup_code": row.get("test_setup_code") or "",
    }


def _mbpp_protocol(config: str) -> DatasetProtocol:
    return DatasetProtocol(
        follows="google-research/mbpp; EleutherAI/lm-evaluation-harness, mbpp (pass@1)",
        shown=("context",),
        withheld=("answer", "test_list", "test_imports", "test_setup_code"),
        extraction="The program in the response.",
        evaluators=uses("answer-quality", "code-execution"),
        primary_score="pass_at_1",
        data=SAME
        if config == "full"
        else differs("Only tasks that were checked by hand; mbpp:full has the 500 of most tables."),
    )


MBPP = hub_dataset(
    "mbpp",
    by_config("google-research-datasets/mbpp", ("sanitized", "full"), "test"),
    each(_mbpp),
    default_config="sanitized",
    family="code",
    protocol=_mbpp_protocol,
    description="Short Python tasks in a sentence, with three assertions each.",
    size=257,
    licence="CC BY 4.0",
    citation="Austin et al. 2021, arXiv:2108.07732",
)

RECORDS = (HUMANEVAL, MBPP)
