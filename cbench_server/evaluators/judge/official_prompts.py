"""Official prompts, which are not ours to copy, known by digests in a user's file."""

from collections.abc import Mapping
from hashlib import blake2b

# Of each prompt with {question}, {answer} and {response} in place, and single spaces.
# LongMemEval: src/evaluation/evaluate_qa.py of xiaowu0162/LongMemEval at b11ff723381c.
_DIGESTS: dict[str, dict[str, str]] = {
    "longmemeval": {
        "": "4255dd2d982b396e",
        "temporal-reasoning": "3e69b0cc37bc7ce8",
        "knowledge-update": "f5dcfaa939b70ede",
        "single-session-preference": "933ce6320136f58f",
        "abstention": "c56946449a41a7de",
    },
}


def prompt_digest(text: str) -> str:
    """Return what a prompt is known by, however its lines are broken."""
    return blake2b(" ".join(text.split()).encode(), digest_size=8).hexdigest()


def are_official(pack: str, prompts: Mapping[str, str]) -> bool:
    """Whether these are all the prompts of a benchmark, word for word."""
    known = _DIGESTS.get(pack)
    return known is not None and known == {
        kind: prompt_digest(text) for kind, text in prompts.items()
    }
