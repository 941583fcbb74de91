"""Instruction following: checked by rules, or left to a judge."""

from functools import partial

from cbench_server.datasets.hub.sources import Part, Row, each
from cbench_server.datasets.record import DEFAULT_REFERENCE_FIELDS, hub_dataset
from cbench_server.types import Example

_dataset = partial(hub_dataset, family="instruction-following")


def _ifeval(row: Row, index: int) -> Example:
    return {
        "id": index,
        "context": row["prompt"],
        "question": row["prompt"],
        "instruction_id_list": row["instruction_id_list"],
        "kwargs": row["kwargs"],
    }


IFEVAL = _dataset(
    "ifeval",
    Part(repository="google/IFEval", split="train"),
    each(_ifeval),
    description="Prompts with instructions on form that a program can check.",
    reference_fields=(*DEFAULT_REFERENCE_FIELDS, "kwargs"),
    evaluators=("answer-quality", "ifeval"),
    primary_score="ifeval_prompt_strict",
    size=541,
    licence="Apache-2.0",
    citation="Zhou et al. 2023, arXiv:2311.07911",
)


def _alpaca_eval(row: Row, index: int) -> Example:
    return {
        "id": index,
        "context": row["instruction"],
        "question": row["instruction"],
        "answer": row["output"],
    }


ALPACA_EVAL = _dataset(
    "alpaca-eval",
    Part(
        repository="tatsu-lab/alpaca_eval",
        config="alpaca_eval",
        split="eval",
        url="alpaca_eval.json",
    ),
    each(_alpaca_eval),
    default_config="alpaca_eval",
    description="Open requests with a reference model's output; meant for --judge-url.",
    official=False,
    size=805,
    licence="CC BY-NC 4.0",
    citation="Li et al. 2023, github.com/tatsu-lab/alpaca_eval",
)


def _mt_bench(row: Row, index: int) -> Example:
    prompts = row["prompt"]
    return {
        "id": index if row.get("prompt_id") is None else row["prompt_id"],
        "context": prompts[0],
        "question": prompts[-1],
        "multi_turn": True,
        "turns": [{"role": "user", "content": prompt} for prompt in prompts],
        "category": row["category"],
    }


MT_BENCH = _dataset(
    "mt-bench",
    Part(repository="HuggingFaceH4/mt_bench_prompts", split="train"),
    each(_mt_bench),
    description="Conversations of two turns without a gold answer; needs --judge-url.",
    primary_score="judge_score",
    official=False,
    size=80,
    licence="Apache-2.0",
    citation="Zheng et al. 2023, arXiv:2306.05685",
)

RECORDS = (IFEVAL, ALPACA_EVAL, MT_BENCH)
