"""Patterns of how responses say which letter they choose.

The patterns run over text that `answer_letter.cleaned` has freed of markup;
an emphasised letter is left between `MARK` and `UNMARK`.
"""

import re
from dataclasses import dataclass
from functools import cache
from typing import Final

MARK: Final = "\x02"
UNMARK: Final = "\x03"


def _cased(alternatives: str) -> str:
    """Match any of the alternatives in small letters, capitalised or in capitals.

    Searching for first characters out of a set is several times as fast as
    ignoring case, and that is where most of the time goes.
    """
    variants: list[str] = []
    for word in alternatives.split("|"):
        variants += [word, word[0].upper() + word[1:]]
        if word.isalpha():
            variants.append(word.upper())
    return f"(?:{'|'.join(dict.fromkeys(variants))})"


_NOUN = _cased(
    "answers|answer|ans|choice|option|response|selection|solution|conclusion|pick|letter|antwort"
    "|antwoord|respuesta|réponse|reponse|risposta|resposta|ответ|jawaban|cevap|odpowiedź|svar"
    "|đáp án|उत्तर|উত্তর|الإجابة|الجواب"
)
_IS = r"(?:is|are|was|be|remains|becomes|ist|es|est|è|é|adalah|là)"
_FILLERS = (
    r"(?:(?:most|very|definitely|clearly|likely|probably|therefore|thus|indeed|actually|obviously"
    r"|certainly|simply|just|then|hence|in fact|still|now|option|choice|letter|answer|number|the"
    r"|either|given by|represented by|to be|labell?ed|as|opción|lettre|letra|buchstabe)\b"
    r"[\s:,]{0,9}){0,9}"
)
# Runs are bounded, so that no text takes more than linear time.
_OPEN = rf"[\s\"'“”‘’(\[{{<{MARK}:>#•-]{{0,20}}"
_CLOSE = rf")\]}}.,;:\"”'’{UNMARK}"
_CORRECT = r"(?:correct|right|best|true|accurate|most\s+\w+)"
_WRONG = r"(?:wrong|incorrect|worst|least|false|other|next|distractor|not)"
_OPTION = _cased("option|options|choice|answer|letter")
_CHOSEN = _cased(
    r"choose|chose|pick|picked|select|selected|go(?:ing)?\s+with|go(?:ing)?\s+for|went\s+with"
    r"|opt(?:ing)?\s+for|vote\s+for|settle\s+on|stick\s+with|say|guess|lean(?:ing)?\s+towards?"
)
_CONCLUDED = _cased(
    r"so|therefore|thus|hence|it['’]s|it\s+is|it\s+must\s+be|think|believe|leaving|leaves"
    r"|left\s+with|points?\s+to|suggests?|indicates?|corresponds?\s+to|matches|means"
)
_THE_ANSWER = r"(?:(?:it|the|answer|option|choice|letter|is|it['’]s|that|with|us)\b\s*)*"
_IS_THE_ANSWER = (
    r"\s*(?:is|must\s+be|would\s+be|should\s+be|has\s+to\s+be|seems\s+to\s+be|remains"
    r"|appears\s+to\s+be)\s+(?:\w+ly\s+|indeed\s+)*(?:the|our|my)\s+"
    rf"(?:(?!{_WRONG}\b)\w+[-\s]+){{0,3}}?(?:answer|option|choice|one)\b"
)
_THIS_IS_THE_ANSWER = (
    r"\b(?:this|it|which|that)\s+is\s+(?:\w+ly\s+|indeed\s+)*the\s+"
    rf"(?:(?!{_WRONG}\b)\w+\s+){{0,2}}?(?:answer|option|choice)\b"
)
_IS_CORRECT = (
    r"\s*(?:is|seems|appears|looks|would\s+be|must\s+be|should\s+be)\s+"
    rf"(?:\w+ly\s+|the\s+|indeed\s+)*{_CORRECT}\b(?!\s+(?:that|in)\b)"
)
_CJK_ANSWER = r"(?:答案|选项|選項|答え|正解|回答|解答|정답|답변|답|故选|应选|选择|選擇|选|選)"
_RULED_OUT = (
    r"\bnot|n['’]t|\bneither|\bnor|\bnever|\bcannot|\brul(?:e|es|ed|ing)\s+out|\beliminat\w+"
    r"|\bexclud\w+|\breject\w*|\brather\s+than|\binstead\s+of|\bunlike|\bexcept|\bdiscard\w*"
)
# Letters of other scripts may stand right beside a Latin one: "故选B项".
_BEFORE = r"(?<![A-Za-z0-9_À-ɏ])"
_AFTER = r"(?![A-Za-z0-9_À-ɏ#+]|['’-][A-Za-z])"

NEGATED_VERB: Final = re.compile(
    r"(?:\bnot|n['’]t|\bnever|\bhardly|\bcannot)(?:\s+\w+)?\s*$", re.IGNORECASE
)
HYPOTHETICAL: Final = re.compile(
    r"\b(?:if|whether|suppose|assuming|unless)\s+(?:\w+\s+){0,3}$", re.IGNORECASE
)
NEXT_QUESTION: Final = re.compile(r"^\W{0,4}(?:Question|Q)\s*\d*\s*[:.]", re.MULTILINE)
SENTENCE_END: Final = re.compile(r"[.!?](?=\s|$)|[。\n]")
NEGATED_AFTER: Final = re.compile(
    rf"[{_CLOSE}\s]{{0,20}}(?:\([^)\n]{{0,100}}\)\s*)?"
    r"(?:(?:is|are|was|were|seems|looks|appears|does|do|would|could|can|has)\s*)?"
    r"(?:be\s+|been\s+|clearly\s+|also\s+)*"
    r"(?:not\b|n['’]t|cannot|incorrect|wrong|false|ruled\s+out|eliminated|unlikely|out\b|invalid"
    r"|implausible|excluded|irrelevant|a\s+distractor|the\s+wrong|the\s+incorrect)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Patterns:
    """The patterns for one set of letters; the group `letter` holds the letter."""

    statements: tuple[re.Pattern[str], ...]
    """Say outright what the answer is."""
    cues: tuple[re.Pattern[str], ...]
    """Where an answer is announced, up to what it is."""
    verdicts: tuple[re.Pattern[str], ...]
    """Call a letter correct, or conclude with one."""
    lone: re.Pattern[str]
    """A letter that is a whole line."""
    heading: re.Pattern[str]
    """A letter that begins a line."""
    named: tuple[re.Pattern[str], ...]
    """Options spoken of as such."""
    mentions: tuple[re.Pattern[str], ...]
    """Letters that stand by themselves."""
    negated_before: re.Pattern[str]
    """What stands before a letter that is ruled out."""
    several: re.Pattern[str]
    """What follows a letter that is not alone, such as "or B"."""


@cache
def patterns(letters: str) -> Patterns:
    """Make the patterns for `letters`, capitals from A on."""
    last = letters[-1]
    upper, lower = f"[A-{last}]", f"[a-{last.lower()}]"
    # "a", "i" and "I" are words: they count only where something closes them off.
    small = rf"(?:(?![ai]){lower}{_AFTER}|[ai]{_AFTER}(?=\s*(?:[{_CLOSE}]|$)))"
    big = (
        rf"(?!I(?!\s*(?:[^\w\s]|$|(?:because|since)\b)))(?!I\s*(?:,|and|or|&)\s*I)"
        rf"{upper}{_AFTER}"
    )
    # So is "A" where a sentence may begin with it.
    no_article = r"(?!A\s+(?!(?:because|since|as|is|due|which|with|for|and|or)\b)[a-z])"
    capital = rf"(?P<letter>{no_article}{big})"
    opening = rf"(?P<letter>{no_article}{big}|{small})"
    enclosed = rf"[(\[{MARK}]\s*(?P<letter>{upper}|{lower})\s*[)\]{UNMARK}]"
    subject = rf"{_BEFORE}(?P<letter>{upper}){_AFTER}[)\]{UNMARK}]?(?:\s*\([^)\n]{{0,100}}\))?,?"
    announced = rf"{_NOUN}\b(?P<between>[^.\n:;?!]{{0,90}}?)(?i:\b{_IS}\b)(?:\s*:)?"
    headed = rf"{_NOUN}[\"'”\s)]{{0,4}}(?::|=|->|→|>|[-–—](?=\s))"
    chosen = rf"{_CHOSEN}\b\s*(?i:{_THE_ANSWER})"
    line = rf"^[ \t\"'“‘(\[{MARK}>#•-]{{0,20}}"
    chain = rf"(?:[(\[]?{upper}[)\]]?\s*(?:,|/|and|or|nor|&)+\s*(?:and\s+|or\s+)?)*"

    def compiled(*texts: str) -> tuple[re.Pattern[str], ...]:
        return tuple(re.compile(text, re.MULTILINE) for text in texts)

    return Patterns(
        statements=compiled(
            rf"{announced}{_OPEN}(?i:{_FILLERS}){_OPEN}(?P<letter>{big}|{small})",
            rf"{headed}{_OPEN}(?i:{_FILLERS}){_OPEN}{opening}",
            rf"{_NOUN}\b[ \t]{{0,9}}\n{_OPEN}{opening}[{_CLOSE}]{{0,9}}[ \t]{{0,20}}$",
            rf"{chosen}{_OPEN}{capital}",
            rf"{chosen}{enclosed}",
            rf"\\f?boxed\s*\{{{_OPEN}(?P<letter>{upper}|{lower})(?=[\s{_CLOSE}]|$)",
            rf"####{_OPEN}{opening}",
            rf"{_CJK_ANSWER}[^\nA-Za-z。.;；]{{0,12}}?{_OPEN}(?P<letter>{upper}){_AFTER}",
            rf"{subject}(?i:{_IS_THE_ANSWER})",
            rf"^[^\w\n]*(?P<letter>{upper}){UNMARK}?[).:][^\n]{{0,400}}?(?i:{_THIS_IS_THE_ANSWER})",
        ),
        cues=compiled(announced, headed, r"\\f?boxed\s*\{", "####"),
        verdicts=compiled(
            rf"{subject}(?i:{_IS_CORRECT})",
            rf"{_CONCLUDED}\b[\s,:]{{0,9}}(?i:{_THE_ANSWER}){_OPEN}{capital}",
            rf"{MARK}(?P<letter>{upper}){UNMARK}",
        ),
        lone=re.compile(
            rf"{line}(?P<letter>{upper}|{lower})[ \t\r{_CLOSE}!]{{0,20}}$",
            re.MULTILINE,
        ),
        heading=re.compile(
            rf"{line}(?P<letter>{upper})(?:[)\]{UNMARK}]+[.:)]?|[.:])(?=\s|$)",
            re.MULTILINE,
        ),
        named=compiled(rf"{_OPTION}\s{{1,9}}[\"'“‘(\[{MARK}]*{capital}"),
        mentions=compiled(rf"{_BEFORE}{capital}", rf"{_BEFORE}{enclosed}"),
        negated_before=re.compile(
            rf"(?:{_RULED_OUT})\s+(?:(?:be|the|options?|choices?|answers?|letters?|either|both|is)"
            rf"\s+)*{chain}(?:(?:options?|choice|answer)\s+)?[\"'“‘(\[{MARK}]*$",
            re.IGNORECASE,
        ),
        several=re.compile(
            rf"[)\]{UNMARK}]?\s*(?:,\s*[(\[]?{upper}[)\]]?\s*)*,?\s*(?:/|&|\band\b|\bor\b)\s*"
            rf"(?:option\s+|choice\s+)?[(\[{MARK}]?{upper}[)\]{UNMARK}]?"
            r"(?![A-Za-z0-9_]|\s+(?:is|are|was|does|would|can|cannot|has)\b)"
        ),
    )
