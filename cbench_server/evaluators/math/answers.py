"""The final answer of a worked solution: where it is stated, and how much of the text it is."""

import re
from dataclasses import dataclass

from cbench_server.evaluators.math.spans import first_span, last_span
from cbench_server.evaluators.math.text import unwrapped, western
from cbench_server.evaluators.math.units import is_unit, without_unit
from cbench_server.texts.boxes import last_boxes

# Longer solutions are read from their end, where answers are.
_MAX_READ = 20_000
_MAX_PHRASE = 80
_MAX_STATEMENTS = 100

_ANNOTATION = re.compile(r"<<[^<>\n]{0,200}>>")
_OPENING = re.compile(r"""^(?:[\s*_`"'“]|\\")+""")
_FINAL = re.compile(r"\bfinal\s+answer\b", re.IGNORECASE)
_MARK = re.compile(r"(?<!#)#{4}(?!#)[ \t]*:?[ \t]*(?=\S)")
_VERB = (
    r"\b(?:is|are|was|would\ be|will\ be|should\ be|must\ be|equals|becomes|comes\ to)\b\s*:?|:|=|→"
)
_FILLER = (
    r"(?:(?:[\s*_:`]|\\text\{)*"
    r"(?:therefore|thus|hence|so|approximately|about|around|roughly|exactly|simply|just|only|indeed"
    r"|equal\ to|given\ by|a\ total\ of|then|now|also|still|option|choice)\b)*[\s*_:`]*"
)
_STATED = re.compile(
    rf"\banswers?\b(?:[^.\n:=?!]{{0,80}}?)[*_\s)\"”]*(?:{_VERB}){_FILLER}"
    rf"|\banswer\W{{0,12}}\n{_FILLER}",
    re.IGNORECASE | re.VERBOSE,
)
# The word for answer in the languages of MGSM and some more.
_STATED_ELSEWHERE = re.compile(
    r"(?:答案|答え|答|정답|ответ|antwort|respuesta|réponse|উত্তর|సమాధానం|คำตอบ|jibu|उत्तर|risposta"
    r"|resposta|الجواب|الإجابة)"
    r"(?:[^\n.:=。\d$\\]{0,60}?(?:是|为|為|は|คือ|হলো|হল|है|هو|هي|:|=|\b(?:ist|lautet|es|est|é|è|ni)\b))?"
    r"[\s*_:`「]*(?=\S)",
    re.IGNORECASE,
)
_LINE_MARK = re.compile(r"^[ \t*_]*(?:A|Ans)[ \t*_]*:[ \t*_]*(?=\S)", re.MULTILINE)
_SENTENCE_END = re.compile(r"[.!?](?=\s|$|[*\"')])|\n|<\||I hope it is correct")
_EQUALS = re.compile(r"(?<![<>!:])=")
_IS = re.compile(r"\b(?:is|are|equals)\b:?|(?<![<>!])=", re.IGNORECASE)
_NUMBER_TOKEN = re.compile(
    r"""(?<![A-Za-z0-9^_])(?<![\^_]\{)(?<!\d[.,:/])
    (?:(?<![\w)\]}])-)?[$€£¥₹₩₽฿]?(?:(?<=[$€£¥])-)?
    (?:\d+(?::\d\d)+(?:\s?[ap]\.?m\b\.?)?
      |[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?(?!\d)|\d{1,3}(?:\ \d{3})+(?!\d)
      |\d+\ \d+/\d+|\d+(?:,\d{2})+,\d{3}(?!\d)
      |\d{1,3}(?:\.\d{3}){2,}(?!\d)
      |\d+(?:[.,]\d+)?|\.\d+)
    (?:\s?/\s?\d+(?:\.\d+)?(?![\d/]))?
    (?:\s?(?:%|percent\b))?""",
    re.VERBOSE,
)
_BETWEEN_NUMBERS = re.compile(r"\s*(?:,|;|,?\s*(?:and|or))\s*")
_OPERATOR = re.compile(r"\s*[-+*/^]\s*[\d(]")
_SUM = re.compile(r"[^=,;(]*(?<![<>!])=")
_UNIT = re.compile(r"\s?([^\W\d_]{2,20}|\^\\circ)")
_CLAUSE = re.compile(r"[.,;:](?=\s)|\b(?:so|then|thus|which|means|leaving|but)\b", re.IGNORECASE)
_FUNCTIONS = re.compile(
    r"(?i:\b(?:sin|cos|tan|cot|sec|csc|log|ln|exp|sqrt|pi|inf|infinity|mod|and|or|gcd|lcm|min|max)\b)"
)
_COMMAND = re.compile(r"\\(?:text\w*|mathrm|mbox|begin|end)\s*\{[^{}]*\}|\\[A-Za-z]+")
# Greek letters are notation; those of other scripts are words.
_WORDS = re.compile(r"[A-Za-z]{3,}|[A-Za-z]{2,}\s+[A-Za-z]{2,}|[^\W\d_A-Za-z\u0370-\u03ff]")


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as it stands in the text, and what it was known by."""

    text: str
    found_by: str
    whole: str = ""
    """What it was cut out of, where that may be the answer: a list, or a phrase like June 20."""


def final_answer(text: str) -> Answer:
    """Find the answer a response settles on.

    In this order: the last box; what follows the last `####`; the last
    statement that the answer is so and so; a line `A: ...`; the whole text if
    it is an expression; what follows the last `=`; the last number or formula.
    """
    text = _ANNOTATION.sub("", western(text[-_MAX_READ:])).strip()
    return (
        _boxed(text)
        or _marked(text)
        or _stated(text)
        or _whole(text)
        or _equated(text)
        or _last(text)
    )


def reference_answer(text: str) -> str:
    """Find the answer in a reference, which is nearly always nothing but the answer."""
    text = _ANNOTATION.sub("", western(text[-_MAX_READ:])).strip()
    found = _boxed(text) or _marked(text)
    if found and found.found_by == "boxed":
        return found.whole or found.text
    if found is None and ("\n" in text or len(text) > _MAX_PHRASE) and not is_expression(text):
        found = _stated(text) or _equated(text) or _last(text)
    return found.text if found else unwrapped(text)


def is_expression(text: str) -> bool:
    """Whether a text is notation throughout, without words."""
    bare = _FUNCTIONS.sub(" ", _COMMAND.sub(" ", text))
    return bool(text.strip()) and not _WORDS.search(bare)


def _boxed(text: str) -> Answer | None:
    boxes = last_boxes(text)
    if not boxes:
        return None
    last = boxes[-1]
    # Some models box a step and then state something else.
    if _FINAL.search(text, last.end) and (stated := _stated(text[last.end :])):
        return stated
    whole = ", ".join(box.content for box in boxes) if len(boxes) > 1 else ""
    return Answer(unwrapped(last.content), "boxed", whole)


def _marked(text: str) -> Answer | None:
    for mark in reversed([*_MARK.finditer(text)][-_MAX_STATEMENTS:]):
        rest = text[mark.end() :]
        line = rest.partition("\n")[0].strip()
        # In Markdown it is a heading, which has a text below it.
        if line == rest.strip() or is_expression(line) or _leading_number(line):
            return _isolated(rest, "####")
    return None


def _stated(text: str) -> Answer | None:
    patterns = (_STATED, _LINE_MARK, _STATED_ELSEWHERE)
    ends = {found.end() for pattern in patterns for found in pattern.finditer(text)}
    for end in sorted(ends, reverse=True)[:_MAX_STATEMENTS]:
        if answer := _isolated(text[end:], "stated"):
            return answer
    return None


def _isolated(rest: str, found_by: str) -> Answer | None:
    """Cut what follows a statement down to the answer."""
    rest = _OPENING.sub("", rest)
    if span := first_span(rest, at_start=True):
        return Answer(span.text, found_by)
    end = _SENTENCE_END.search(rest)
    sentence = unwrapped((rest[: end.start()] if end else rest).strip().strip("*_`"))
    if not sentence:
        return None
    if rest[: end.start() if end else None].rstrip(" *_").endswith(":") and end:
        return _isolated(rest[end.end() :], found_by)
    phrase = sentence if len(sentence) <= _MAX_PHRASE else ""
    answer = _within(sentence) or phrase
    return Answer(answer, found_by, phrase if phrase != answer else "") if answer else None


def _within(sentence: str) -> str | None:
    """Find the expression that a sentence is about; None if it has none."""
    if is_expression(sentence):
        return sentence
    # "The answer: the largest n is 34."
    for part in dict.fromkeys((sentence, _IS.split(sentence)[-1].strip())):
        if span := first_span(part, at_start=True):
            return span.text
        if number := _leading_number(part):
            return number
        if is_expression(part):
            return unwrapped(part)
    if span := first_span(sentence):
        return span.text
    if numbers := [*_NUMBER_TOKEN.finditer(sentence)]:
        return numbers[-1][0] + _unit_after(sentence[numbers[-1].end() :])
    return None


def _leading_number(sentence: str) -> str | None:
    """Return the number a sentence begins with, or what a sum that it begins with comes to."""
    number = _NUMBER_TOKEN.match(sentence)
    if number is None:
        return None
    following = sentence[number.end() :]
    if _SUM.match(following):
        result = _NUMBER_TOKEN.match(sentence.rpartition("=")[2].strip())
        return result[0] if result else None
    if _OPERATOR.match(following):
        return None
    return number[0] + _unit_after(following)


def _unit_after(following: str) -> str:
    """Keep a unit next to a number, and no other word."""
    word = _UNIT.match(following)
    return word[0] if word and is_unit(word[1]) else ""


def _whole(text: str) -> Answer | None:
    short = unwrapped(text)
    if "\n" in short:
        return None
    # A sum with its result is a calculation, and its result the answer.
    is_sum = "=" in short and not re.search(r"[A-Za-z]", short)
    if is_expression(without_unit(short)) and not is_sum:
        return Answer(short, "whole")
    if len(short.split()) <= 3 and not _NUMBER_TOKEN.search(short):
        return Answer(short, "whole")
    return None


def _equated(text: str) -> Answer | None:
    """Take what the last line comes to: "4 + 5 = 9 points in 40 minutes" is 9."""
    line = text.rpartition("\n")[2]
    parts = _EQUALS.split(line)
    # A separate formula is taken whole: it may be an equation.
    if len(parts) == 1 or last_span(line) is not None:
        return None
    right = unwrapped(parts[-1].strip().strip("*_`"))
    if right and is_expression(right) and right.count("{") == right.count("}"):
        return Answer(right, "equals")
    number = _NUMBER_TOKEN.match(right)
    if number is None or _CLAUSE.search(right, number.end()):
        return None
    return Answer(number[0] + _unit_after(right[number.end() :]), "equals")


def _last(text: str) -> Answer:
    span = last_span(text)
    numbers = [*_NUMBER_TOKEN.finditer(text, span.end if span else 0)]
    if numbers:
        number = numbers[-1][0] + _unit_after(text[numbers[-1].end() :])
        whole = unwrapped(text) if len(text) <= _MAX_PHRASE else ""
        return Answer(number, "last number", _listed_numbers(text, numbers) or whole)
    if span is not None:
        return Answer(span.text, "last formula")
    line = _IS.split(text.rpartition("\n")[2])[-1]
    return Answer(unwrapped(line)[:_MAX_PHRASE], "last line")


def _listed_numbers(text: str, numbers: list[re.Match[str]]) -> str:
    """Return the numbers that the last one ends a list of; nothing if there is no list."""
    listed = [numbers[-1]]
    for number in reversed(numbers[:-1]):
        if not _BETWEEN_NUMBERS.fullmatch(text, number.end(), listed[-1].start()):
            break
        listed.append(number)
    return ", ".join(number[0] for number in reversed(listed)) if len(listed) > 1 else ""
