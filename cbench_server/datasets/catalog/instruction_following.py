"""Instruction following: checked by rules, or left to a judge."""

from functools import partial

from cbench_server.datasets.hub.sources import Part, Row, each
from cbench_server.datasets.protocol import SAME, DatasetProtocol, differs, external, uses
from cbench_server.datasets.record import hub_dataset
from cbench_server.types import Example

_dataset = partial(hub_dataset, family="instruction-following")


def _ifeval(row: Row, index: int) -> Example:
    return {
        "id": index if row.get("key") is None else row["key"],
        "context": row["prompt"],
        "instruction_id_list": row["instruction_id_list"],
        "kwargs": row["kwargs"],
    }


IFEVAL = _dataset(
    "ifeval",
    Part(repository="google/IFEval", split="train"),
    each(_ifeval),
    description="Prompts with instructions on form that a program can check.",
    protocol=DatasetProtocol(
        follows="google-research/instruction_following_eval",
        shown=("context",),
        withheld=("instruction_id_list", "kwargs"),
        prompt=SAME,
        extraction="The whole response is checked.",
        evaluators=uses("answer-quality", "ifeval"),
        primary_score="ifeval_prompt_strict",
        metric=differs(
            "In prompts 1122 and 1129 the sign asked for is counted, not a letter drawn at random."
        ),
    ),
    size=541,
    licence="Apache-2.0",
    citation="Zhou et al. 2023, arXiv:2311.07911",
)


_GPT4 = "alpaca_eval_gpt4_baseline"


def _alpaca_eval(row: Row, index: int) -> Example:
    return {
        "id": index,
        "context": row["instruction"],
        "answer": row["output"],
        "generator": row.get("generator") or "",
        "category": row.get("dataset") or "",
    }


def _alpaca_eval_protocol(config: str) -> DatasetProtocol:
    return DatasetProtocol(
        follows="tatsu-lab/alpaca_eval",
        shown=("context",),
        withheld=("answer", "generator", "category"),
        prompt=SAME,
        extraction="The whole response is compared with the baseline's by a judge.",
        primary_score="",
        groups=("category",),
        data=SAME
        if config == _GPT4
        else differs(f"The baseline is text-davinci-003, as at first; since 2.0 it is {_GPT4}."),
        metric=external(
            "The win rate needs a judge; length control needs alpaca_eval itself: cbench export "
            "--format alpaca-eval."
        ),
        aggregation=external("Length control is a regression over all models of the leaderboard."),
    )


ALPACA_EVAL = _dataset(
    "alpaca-eval",
    {
        name: (
            Part(repository="tatsu-lab/alpaca_eval", config=name, split="eval", url=f"{name}.json"),
        )
        for name in ("alpaca_eval", _GPT4)
    },
    each(_alpaca_eval),
    default_config="alpaca_eval",
    protocol=_alpaca_eval_protocol,
    description="Open requests with a baseline's output, to be compared by a judge.",
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
        "reference": [str(text) for text in row.get("reference") or []],
    }


MT_BENCH = _dataset(
    "mt-bench",
    Part(repository="HuggingFaceH4/mt_bench_prompts", split="train"),
    each(_mt_bench),
    description="Conversations of two turns without a gold answer; needs --judge-url.",
    protocol=DatasetProtocol(
        follows="lm-sys/FastChat, fastchat/llm_judge",
        shown=("context", "question", "multi_turn", "turns"),
        withheld=("reference", "category"),
        prompt=SAME,
        extraction="A judge grades the response to each turn.",
        data=differs("References are the question file's; FastChat's judge sees GPT-4's answers."),
        primary_score="judge_score",
        groups=("category",),
        metric=external("Grades are those of a judge model; the official ones are GPT-4's."),
    ),
    size=80,
    licence="Apache-2.0",
    citation="Zheng et al. 2023, arXiv:2306.05685",
)

RECORDS = (IFEVAL, ALPACA_EVAL, MT_BENCH)
