"""Official prompts, which are not ours to copy, known by digests in a user's file."""

from collections.abc import Mapping
from hashlib import blake2b

# Of each prompt with single spaces; scripts/official_prompts.py checks them against
#   xiaowu0162/LongMemEval b11ff723 and 9e0b455f, src/evaluation/evaluate_qa.py, with {question},
#     {answer} and {response} in place;
#   lm-sys/FastChat 0e6d3e4b, fastchat/llm_judge/data/judge_prompts.jsonl, in chat markup;
#   tatsu-lab/alpaca_eval cd543a1d, alpaca_eval_clf_gpt4_turbo/alpaca_eval_clf.txt;
#   mem0ai/mem0 aae5989e, evaluation/metrics/llm_judge.py, by which memory vendors quote LoCoMo.
DIGESTS: dict[str, dict[str, str]] = {
    "longmemeval": {
        "": "4255dd2d982b396e",
        "temporal-reasoning": "3e69b0cc37bc7ce8",
        "knowledge-update": "f5dcfaa939b70ede",
        "single-session-preference": "933ce6320136f58f",
        "abstention": "c56946449a41a7de",
    },
    "mt-bench": {
        "single-v1": "2d41ab11c3d99ebc",
        "single-math-v1": "2c952f9a69338f46",
        "single-v1-multi-turn": "f4d3f3a5b7a45f19",
        "single-math-v1-multi-turn": "7157047379a97f36",
    },
    "alpaca-eval": {"": "943a13ccdb1e59fb"},
    "locomo": {"": "8e1c818422ee480b"},
}


def prompt_digest(text: str) -> str:
    """Return what a prompt is known by, however its lines are broken."""
    return blake2b(" ".join(text.split()).encode(), digest_size=8).hexdigest()


def are_official(pack: str, prompts: Mapping[str, str]) -> bool:
    """Whether these are all the prompts of a benchmark, word for word."""
    known = DIGESTS.get(pack)
    return known is not None and known == {
        kind: prompt_digest(text) for kind, text in prompts.items()
    }
