"""The 25 instructions of the IFEval paper, checked as its authors' program checks them.

Where that program searches with a pattern whose time grows with the square of
the text, the same question is put here in a way that reads the text once.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from cbench_server.evaluators.ifeval.language import detect_language
from cbench_server.evaluators.ifeval.parameters import Parameters, holds
from cbench_server.evaluators.ifeval.sentences import (
    count_capital_words,
    count_sentences,
    count_words,
)

CONSTRAINED_RESPONSES = ("My answer is yes.", "My answer is no.", "My answer is maybe.")

# Space before a bullet may span lines there; what it spans holds no other bullet.
_STAR_BULLET = re.compile(r"^[^\S\n]*+\*[^*].*$", re.MULTILINE)
_DASH_BULLET = re.compile(r"^[^\S\n]*+-", re.MULTILINE)
_HIGHLIGHT = re.compile(r"\*[^\n*]*\*")
_DOUBLE_HIGHLIGHT = re.compile(r"\*\*[^\n*]*\*\*")
_DIVIDER = re.compile(r"\s?\*\*\*\s?")
_POSTSCRIPTS = {"P.S.": r"p\.\s?s\.", "P.P.S": r"p\.\s?p\.\s?s"}
_ENDS_FIRST_WORD = re.compile(r"[.,?!'\"]")


@dataclass(frozen=True, slots=True)
class Rule:
    """How an instruction is checked, and the parameters without which it asks for nothing."""

    follows: Callable[[str, Parameters], bool]
    needs: tuple[str, ...] = ()


def _existence(text: str, asked: Parameters) -> bool:
    return all(re.search(word, text, re.IGNORECASE) for word in asked["keywords"])


def _frequency(text: str, asked: Parameters) -> bool:
    count = len(re.findall(asked["keyword"].strip(), text, re.IGNORECASE))
    return holds(count, asked.get("relation"), asked["frequency"])


def _forbidden_words(text: str, asked: Parameters) -> bool:
    words = asked["forbidden_words"]
    return not any(re.search(rf"\b{word}\b", text, re.IGNORECASE) for word in words)


def _letter_frequency(text: str, asked: Parameters) -> bool:
    letter = asked["letter"].strip().lower()
    count = text.lower().count(letter) if letter else 0
    return holds(count, asked.get("let_relation"), asked["let_frequency"])


def _language(text: str, asked: Parameters) -> bool:
    return detect_language(text) in (asked["language"], None)


def _sentences(text: str, asked: Parameters) -> bool:
    threshold = asked["num_sentences"]
    count = count_sentences(text, int(threshold) + 1)
    return holds(count, asked.get("relation"), threshold)


def _words(text: str, asked: Parameters) -> bool:
    return holds(count_words(text), asked.get("relation"), asked["num_words"])


def _paragraphs(text: str, asked: Parameters) -> bool:
    blank = [not part.strip() for part in _DIVIDER.split(text)]
    if any(blank[1:-1]):
        return False
    return bool(blank.count(False) == asked["num_paragraphs"])


def _first_word(text: str, asked: Parameters) -> bool:
    parts = text.split("\n\n")
    filled = sum(bool(part.strip()) for part in parts)
    position = int(asked["nth_paragraph"])
    # The place is counted with blank paragraphs, the number without.
    if not 1 <= position <= filled:
        return False
    words = parts[position - 1].split()
    if not words:
        return False
    first = _ENDS_FIRST_WORD.split(words[0].lstrip("'").lstrip('"'), maxsplit=1)[0]
    right_word = _lowered_by_letter(first) == asked["first_word"].lower()
    return bool(filled == asked["num_paragraphs"] and right_word)


def _lowered_by_letter(word: str) -> str:
    # A word lowered whole may end in another sigma than its letters one by one.
    return "".join(letter.lower() for letter in word)


def _placeholders(text: str, asked: Parameters) -> bool:
    return bool(count_bracketed(text, 0) >= asked["num_placeholders"])


def count_bracketed(text: str, least: int) -> int:
    """Count the shortest spans "[...]" within a line that hold at least so many characters."""
    count = 0
    for line in text.split("\n"):
        start = line.find("[")
        while start >= 0 and (end := line.find("]", start + 1 + least)) >= 0:
            count += 1
            start = line.find("[", end + 1)
    return count


def _postscript(text: str, asked: Parameters) -> bool:
    marker = asked["postscript_marker"].strip()
    return bool(re.search(_POSTSCRIPTS.get(marker, marker.lower()), text.lower()))


def _bullets(text: str, asked: Parameters) -> bool:
    count = len(_STAR_BULLET.findall(text)) + len(_DASH_BULLET.findall(text))
    return bool(count == asked["num_bullets"])


def _constrained(text: str, asked: Parameters) -> bool:
    return any(option in text for option in CONSTRAINED_RESPONSES)


def _highlights(text: str, asked: Parameters) -> bool:
    single = sum(bool(span.strip("*").strip()) for span in _HIGHLIGHT.findall(text))
    double = sum(bool(span[2:-2].strip()) for span in _DOUBLE_HIGHLIGHT.findall(text))
    return bool(single + double >= asked["num_highlights"])


def _sections(text: str, asked: Parameters) -> bool:
    marker = re.compile(rf"\s?{asked['section_spliter'].strip()}\s?\d+\s?")
    return bool(len(marker.split(text)) - 1 >= asked["num_sections"])


def _json(text: str, asked: Parameters) -> bool:
    text = text.strip()
    for fence in ("```json", "```Json", "```JSON", "```"):
        text = text.removeprefix(fence)
    try:
        json.loads(text.removesuffix("```").strip())
    except ValueError:
        return False
    return True


def _title(text: str, asked: Parameters) -> bool:
    for line in text.split("\n"):
        start, end = line.find("<<"), line.rfind(">>")
        long_enough = 0 <= start <= end - 3
        if long_enough and line[start : end + 2].lstrip("<").rstrip(">").strip():
            return True
    return False


def _two_responses(text: str, asked: Parameters) -> bool:
    parts = [part.strip() for part in text.split("******")]
    if not all(parts[1:-1]):
        return False
    responses = [part for part in parts if part]
    return len(responses) == 2 and responses[0] != responses[1]


def _repeat_prompt(text: str, asked: Parameters) -> bool:
    return text.strip().lower().startswith(asked["prompt_to_repeat"].strip().lower())


def _ending(text: str, asked: Parameters) -> bool:
    return text.strip().strip('"').lower().endswith(asked["end_phrase"].strip().lower())


def _quotation(text: str, asked: Parameters) -> bool:
    text = text.strip()
    return len(text) > 1 and text[0] == text[-1] == '"'


def _capital_words(text: str, asked: Parameters) -> bool:
    count = count_capital_words(text)
    return holds(count, asked.get("capital_relation"), asked["capital_frequency"])


def _english_capital(text: str, asked: Parameters) -> bool:
    return text.isupper() and detect_language(text) in ("en", None)


def _english_lowercase(text: str, asked: Parameters) -> bool:
    return text.islower() and detect_language(text) in ("en", None)


def _no_comma(text: str, asked: Parameters) -> bool:
    return "," not in text


OFFICIAL_RULES = {
    "keywords:existence": Rule(_existence, ("keywords",)),
    "keywords:frequency": Rule(_frequency, ("keyword", "frequency")),
    "keywords:forbidden_words": Rule(_forbidden_words, ("forbidden_words",)),
    "keywords:letter_frequency": Rule(_letter_frequency, ("letter", "let_frequency")),
    "language:response_language": Rule(_language, ("language",)),
    "length_constraints:number_sentences": Rule(_sentences, ("num_sentences",)),
    "length_constraints:number_paragraphs": Rule(_paragraphs, ("num_paragraphs",)),
    "length_constraints:number_words": Rule(_words, ("num_words",)),
    "length_constraints:nth_paragraph_first_word": Rule(
        _first_word, ("num_paragraphs", "nth_paragraph", "first_word")
    ),
    "detectable_content:number_placeholders": Rule(_placeholders, ("num_placeholders",)),
    "detectable_content:postscript": Rule(_postscript, ("postscript_marker",)),
    "detectable_format:number_bullet_lists": Rule(_bullets, ("num_bullets",)),
    "detectable_format:constrained_response": Rule(_constrained),
    "detectable_format:number_highlighted_sections": Rule(_highlights, ("num_highlights",)),
    "detectable_format:multiple_sections": Rule(_sections, ("section_spliter", "num_sections")),
    "detectable_format:json_format": Rule(_json),
    "detectable_format:title": Rule(_title),
    "combination:two_responses": Rule(_two_responses),
    "combination:repeat_prompt": Rule(_repeat_prompt, ("prompt_to_repeat",)),
    "startend:end_checker": Rule(_ending, ("end_phrase",)),
    "startend:quotation": Rule(_quotation),
    "change_case:capital_word_frequency": Rule(_capital_words, ("capital_frequency",)),
    "change_case:english_capital": Rule(_english_capital),
    "change_case:english_lowercase": Rule(_english_lowercase),
    "punctuation:no_comma": Rule(_no_comma),
}
