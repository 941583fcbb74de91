"""Judge packs: what a judge is asked and how it answers, known by the digest of their words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from typing import Literal

from cbench_server.errors import InvalidInput, UnknownName
from cbench_server.evaluators.judge.places import check_answers, check_turns
from cbench_server.evaluators.judge.ratings import FIVE, Scale
from cbench_server.types import Example

VerdictKind = Literal["rating", "yes-no", "pairwise"]

ABSTENTION = "abstention"
"""The type of question that has no answer."""


@dataclass(frozen=True)
class JudgePack:
    """What a judge is told; a changed word changes the digest."""

    name: str
    kind: VerdictKind
    instructions: str
    closing: str
    """How to reply; said last, after the judged material."""
    reminder: str
    """What is said to a judge whose reply had no verdict."""
    max_tokens: int
    shows_reference: bool = True
    scale: Scale = FIVE
    by_type: Mapping[str, str] = field(default_factory=dict)
    """Instructions for questions of certain types, instead of the others."""
    is_by_turn: bool = False
    """Whether each turn of a conversation gets a verdict of its own."""
    averages_types: bool = False
    """Whether the benchmark also publishes the mean of the means by type."""
    templates: Mapping[str, str] = field(default_factory=dict)
    """Whole prompts from a file, by type ("" for all others), which name what stands where;
    they stand in place of our own words."""

    @cached_property
    def digest(self) -> str:
        """Twelve hexadecimal digits of what the pack says."""
        said = [self.kind, self.instructions, self.closing, str(self.shows_reference)]
        said += [text for pair in sorted(self.by_type.items()) for text in pair]
        said += [text for pair in sorted(self.templates.items()) for text in pair]
        return blake2b("\0".join(said).encode(), digest_size=6).hexdigest()

    def type_of(self, original: Example) -> str:
        """Name the prompt that a question gets; empty for the one of all others."""
        known = self.templates or self.by_type
        if original.get("is_abstention") and ABSTENTION in known:
            return ABSTENTION
        kind = str(original.get("question_type") or "")
        return kind if kind in known else ""

    def instructions_for(self, original: Example) -> str:
        """Return what is said before the material."""
        return self.by_type.get(self.type_of(original), self.instructions)

    def template_for(self, original: Example) -> str:
        """Return the whole prompt where it comes from a file; else the empty text."""
        return self.templates.get(self.type_of(original), "")

    def with_templates(self, templates: Mapping[str, str]) -> "JudgePack":
        """Take whole prompts instead of ours; raise InvalidInput for one that lacks a part."""
        if self.is_by_turn:
            check_turns(templates)
            # Those who explain at length before the grade would be cut off.
            return replace(self, templates=dict(templates), max_tokens=2048)
        if "" not in templates and not (self.by_type and set(self.by_type) <= set(templates)):
            missing = ", ".join(sorted(set(self.by_type) - set(templates))) or '""'
            raise InvalidInput(
                f'the prompts for pack "{self.name}" lack {missing}; name the prompt for all other '
                'questions ""'
            )
        for kind, text in templates.items():
            check_answers(
                kind,
                text,
                is_pairwise=self.kind == "pairwise",
                shows_reference=self.shows_reference,
            )
        return replace(self, templates=dict(templates))


def pack_named(name: str, kinds: Sequence[VerdictKind]) -> JudgePack:
    """Return the pack of that name whose verdicts are of one of the kinds, or raise UnknownName."""
    from cbench_server.evaluators.judge.answer_packs import ANSWER_PACKS
    from cbench_server.evaluators.judge.open_packs import OPEN_PACKS

    fitting = {pack.name: pack for pack in (*OPEN_PACKS, *ANSWER_PACKS) if pack.kind in kinds}
    if name not in fitting:
        raise UnknownName("judge pack", name, fitting)
    return fitting[name]
