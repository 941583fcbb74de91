"""Yes or no: which of the two a judge's reply says, in these or other words.

A reply that says neither, or both, has no verdict; nor has one that repeats
the question. Every pattern runs in time linear in a reply, whose runs of spaces
are single.
"""

import re

from cbench_server.evaluators.judge.named_verdicts import YES_NO, under_a_name
from cbench_server.evaluators.judge.replies import ends_of, plain

_IDIOM = re.compile(
    r"\b(?:there is |with(?:out)? )?no (?:doubt|question|problem|issues?|longer|need|matter"
    r"|one|idea|difference|errors?|mistakes?|contradictions?)\b",
    re.IGNORECASE,
)
# What follows is not said of the response, up to the end of the sentence.
_NO_NOUN = (
    r"no (?:reason|information|mention|evidence|indication|basis|way|references?|details?|facts?"
    r"|part|other|further|relevant|specific|clear|such)"
)
_OPEN = re.compile(
    r"\b(?:whether|if|unless|unclear|unsure|not (?:sure|certain)|partial(?:ly)?|partly|half"
    r"|(?:almost|mostly|nearly|largely|somewhat)(?= (?:in)?(?:correct|right|true|accurate))"
    rf"|{_NO_NOUN})\b[^.!?\n]*",
    re.IGNORECASE,
)
_BOTH = re.compile(
    r"\b(?:yes ?(?:and|or|/|,|\||) ?no|no ?(?:and|or|/|,|\||) ?yes)\b", re.IGNORECASE
)
_LEADING = re.compile(
    r"[^\w\n]{0,9}(?:(?:my |the |final ){0,3}(?:verdict|answer|judge?ment|decision|label)"
    rf" ?(?:is|:|=)? ?)?[^\w\n]{{0,9}}(?!{_NO_NOUN}\b)"
    r"(yes|no|true|false|correct(?! \w+ ?(?:is|was|are|:|=))|incorrect|wrong)\b",
    re.IGNORECASE,
)
# A reply in the language of the material; "si" may also begin a condition.
_ELSEWHERE = re.compile(
    r"[^\w\n]{0,9}(?:(sí|si|oui|ja|sim|да|是|是的|对|對|正确|正確|はい|正解|예|네)"
    r"|(?:non|nein|não|nee|нет|否|不是|不对|不對|不正确|不正確|错误|錯誤|いいえ|不正解|아니요))"
    r" ?(?:$|[,.:;!。，、：；！\n])",
    re.IGNORECASE,
)
# What somebody else said: "the response says no", "the correct answer is yes".
_SAID = re.compile(
    r"\b(?:says|said|states|stated|answers|answered|replies|replied|claims|claimed|reads"
    r"|(?:(?:correct|right|true|expected|reference|gold|given|generated|model) (?:answer|response)"
    r"|reference|response) ?(?:is|was|:))"
    r" ?:? ?(?:that )?['‘’]?(?:yes|no)\b['’]?",
    re.IGNORECASE,
)
# Of what is correct, not of the response: "the correct answer is Paris", "differs from the
# correct date".
_ELSE_CORRECT = re.compile(
    r"(\b(?:(?:giv|stat|provid|contain|identif|includ|nam|mention|report|captur|convey|match"
    r"|reach)(?:es|ies|s|ing|e|y|ed|en)?|(?:response|it|this|that) is)(?: \w+){0,2} )?"
    r"\b(?:the )?(?:correct|right|true|accurate) (?:answer|response|date|day|month|year|number|name"
    r"|place|city|value|reply|reference|fact|information|one)s?\b( ?(?:is|was|are|were|:|=))?",
    re.IGNORECASE,
)
# A word that turns the verdict around, at most three words before it.
_TURNED = re.compile(
    r"\b(?:not|never|neither|nothing|without|fails to|far from|hardly|cannot"
    r"|(?:is|was|does|do|are|ca)n[’']?t)"
    r"(?: \w+){0,3}? (correct|right|true|accurate|incorrect|wrong|false)\b",
    re.IGNORECASE,
)
_NONE_IS = re.compile(
    r"\bno (?:\w+ ){1,4}(?:is|are|was|were) "
    r"(correct|right|true|accurate|incorrect|wrong|false|missing)\b",
    re.IGNORECASE,
)
_VERDICT_BY_ITSELF = re.compile(
    r"\b(?:yes|no)\b(?= ?(?:$|[^\w\s]|\n|(?:because|since|as|for)\b))", re.IGNORECASE
)
_NOT_YES = re.compile(
    r"(?:\bnot|\bnever|\bcannot|n[’']t|\bno reason to)(?: \w+){0,2}? yes\b", re.IGNORECASE
)
_JUDGING = re.compile(
    r"\b(correct|incorrect|true|false|accurate|inaccurate|wrong)\b", re.IGNORECASE
)
_GOOD = frozenset({"yes", "true", "correct", "right", "accurate"})
_AS_WORDS = {"1": "yes", "0": "no"}


def parse_yes_no(reply: str) -> bool | None:
    """Return whether the reply says yes; None if it says neither, or both.

    The first line counts before the rest, capitals before small letters, and
    YES or NO before words such as "incorrect", which says no.
    """
    reply = ends_of(reply)
    if (named := under_a_name(reply, YES_NO)) is not None:
        reply = _AS_WORDS.get(named, named)
    text = _SAID.sub(" ", _IDIOM.sub(" ", plain(reply))).strip()
    first = text.partition("\n")[0]
    if _BOTH.search(first) or _NOT_YES.search(first):
        return None
    if leading := _LEADING.match(first):
        said = leading[1].lower()
        if said in ("yes", "no") or _judged(first) is (said in _GOOD):
            return said in _GOOD
    if other := _ELSEWHERE.match(first):
        return other[1] is not None
    for part in (first, text):
        if found := {*re.findall(r"\b(?:YES|NO)\b", part)}:
            return found == {"YES"} if len(found) == 1 else None
    for part in (_OPEN.sub(" ", first), _OPEN.sub(" ", text)):
        if found := {word.lower() for word in _VERDICT_BY_ITSELF.findall(part)}:
            return found == {"yes"} if len(found) == 1 else None
    judged = _judged(first)
    return judged if judged is not None else _judged(text)


def _judged(text: str) -> bool | None:
    """Return what words such as "correct" and "not right" say together; None if they differ."""
    verdicts = {word.lower() not in _GOOD for word in _NONE_IS.findall(text)}
    text = _OPEN.sub(" ", _NONE_IS.sub(" ", text))
    # What is asked back is not said.
    parts = re.split(r"([.!?\n])", text)
    text = ". ".join(
        said for said, end in zip(parts[::2], [*parts[1::2], ""], strict=True) if end != "?"
    )
    text = _ELSE_CORRECT.sub(_of_the_response, text)
    verdicts |= {word.lower() not in _GOOD for word in _TURNED.findall(text)}
    rest = _TURNED.sub(" ", text)
    verdicts |= {word.lower() in _GOOD for word in _JUDGING.findall(rest)}
    return verdicts.pop() if len(verdicts) == 1 else None


def _of_the_response(found: re.Match[str]) -> str:
    is_said = found[1] and found[2] in (None, ":")
    return found[0] if is_said or (found.start() == 0 and not found[2]) else " "
