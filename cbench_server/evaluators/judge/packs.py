"""Judge packs: named prompts, each known by the digest of its words."""

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Literal

from cbench_server.errors import UnknownName

VerdictKind = Literal["rating", "yes-no"]


@dataclass(frozen=True)
class JudgePack:
    """What a judge is told; a changed word changes the digest."""

    name: str
    kind: VerdictKind
    instructions: str
    closing: str
    """How to reply; said last, after the judged material."""
    max_tokens: int
    shows_reference: bool = True

    @cached_property
    def digest(self) -> str:
        """Twelve hexadecimal digits of what the pack says."""
        said = "\0".join([self.kind, self.instructions, self.closing, str(self.shows_reference)])
        return blake2b(said.encode(), digest_size=6).hexdigest()


_SCALE = """\
1: wrong, irrelevant, or no answer at all
2: major errors, or most of what matters is missing
3: partly right, but key details are missing or wrong
4: right, with minor flaws
5: excellent: right and complete"""

_RATE = "Now rate the RESPONSE. Reply with one number from 1 to 5 and nothing else."

CORRECTNESS = JudgePack(
    name="correctness",
    kind="rating",
    instructions=f"""\
You are an expert judge of answers. Rate how well the RESPONSE answers the QUESTION, on this scale:
{_SCALE}
Where a REFERENCE is given, it holds the correct answer, or several that are accepted: what agrees \
with it in substance is right, however it is worded. Where none is given, judge by what you \
know.""",
    closing=_RATE,
    max_tokens=16,
)

HELPFULNESS = JudgePack(
    name="helpfulness",
    kind="rating",
    instructions=f"""\
You are an expert judge of answers to open questions. Rate how well the RESPONSE serves whoever \
asked the QUESTION: whether it is relevant, accurate, thorough and clear. Length by itself earns \
nothing. Use this scale:
{_SCALE}""",
    closing=_RATE,
    max_tokens=16,
    shows_reference=False,
)

MEMORY_QA = JudgePack(
    name="memory-qa",
    kind="yes-no",
    instructions="""\
You are a strict but fair judge of a system that answers questions about past conversations. \
Decide whether the RESPONSE answers the QUESTION correctly, given the REFERENCE, which holds the \
correct answer or several that are accepted. It is correct when it conveys the same essential \
information; other words and further context do no harm. It is not correct when the essential \
information is missing, different or contradicted.""",
    closing="Is the RESPONSE correct? Reply with YES or NO on the first line, "
    "then give the reason in one sentence.",
    max_tokens=64,
)

PACKS = {pack.name: pack for pack in (CORRECTNESS, HELPFULNESS, MEMORY_QA)}


def pack_named(name: str, kind: VerdictKind) -> JudgePack:
    """Return the pack of that name whose verdicts are of that kind, or raise UnknownName."""
    fitting = {pack.name: pack for pack in PACKS.values() if pack.kind == kind}
    if name not in fitting:
        raise UnknownName("judge pack", name, fitting)
    return fitting[name]
