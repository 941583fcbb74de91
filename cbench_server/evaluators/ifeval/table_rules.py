"""The 19 instructions of the project's own table, which differs from the paper's rules."""

import json
import re
from collections.abc import Callable

from cbench_server.evaluators.ifeval.official_rules import OFFICIAL_RULES, count_bracketed
from cbench_server.evaluators.ifeval.parameters import Parameters, holds

_BULLET = re.compile(r"^[^\S\n]*+[*\-•]\s", re.MULTILINE)
_SENTENCE_ENDS = re.compile(r"[.!?]+")
_official_constrained = OFFICIAL_RULES["detectable_format:constrained_response"].follows


def _existence(text: str, asked: Parameters) -> bool:
    text = text.lower()
    return all(word.lower() in text for word in asked.get("keywords", ()))


def _forbidden_words(text: str, asked: Parameters) -> bool:
    words = [re.escape(word.strip()) for word in asked.get("forbidden_words", ()) if word.strip()]
    return not any(re.search(rf"(?<!\w){word}(?!\w)", text, re.IGNORECASE) for word in words)


def _frequency(text: str, asked: Parameters) -> bool:
    count = text.lower().count(asked.get("keyword", "").lower())
    return holds(count, asked.get("relation"), asked.get("frequency", 0))


def _letter_frequency(text: str, asked: Parameters) -> bool:
    count = text.lower().count(asked.get("letter", "").lower())
    return holds(count, asked.get("let_relation"), asked.get("let_frequency", 0))


def _words(text: str, asked: Parameters) -> bool:
    return holds(len(text.split()), asked.get("relation"), asked.get("num_words", 0))


def _sentences(text: str, asked: Parameters) -> bool:
    count = sum(bool(part.strip()) for part in _SENTENCE_ENDS.split(text))
    return holds(count, asked.get("relation"), asked.get("num_sentences", 0))


def _paragraphs(text: str, asked: Parameters) -> bool:
    count = sum(bool(part.strip()) for part in text.split("\n\n"))
    return bool(count >= asked.get("num_paragraphs", 0))


def _json(text: str, asked: Parameters) -> bool:
    try:
        json.loads(text.strip())
    except ValueError:
        return False
    return True


def _bullets(text: str, asked: Parameters) -> bool:
    return bool(len(_BULLET.findall(text)) >= asked.get("num_bullets", 0))


def _title(text: str, asked: Parameters) -> bool:
    # What stands between two ">" is one part, so an empty part means ">>".
    parts = text.split(">")
    return any(
        "<<" in parts[index][:-1] and not parts[index + 1] for index in range(len(parts) - 2)
    )


def _constrained(text: str, asked: Parameters) -> bool:
    if "constrained_response" not in asked:
        return _official_constrained(text, asked)
    return text.strip() in asked["constrained_response"]


def _placeholders(text: str, asked: Parameters) -> bool:
    return bool(count_bracketed(text, 1) >= asked.get("num_placeholders", 0))


def _postscript(text: str, asked: Parameters) -> bool:
    return asked.get("postscript_marker", "P.S.").lower() in text.lower()


def _no_comma(text: str, asked: Parameters) -> bool:
    return "," not in text


def _english_capital(text: str, asked: Parameters) -> bool:
    return all(word[0].isupper() for word in text.split() if word[0].isalpha())


def _english_lowercase(text: str, asked: Parameters) -> bool:
    return text == text.lower()


def _ending(text: str, asked: Parameters) -> bool:
    return text.rstrip().endswith(asked.get("end_phrase", ""))


def _repeat_prompt(text: str, asked: Parameters) -> bool:
    return asked.get("prompt_to_repeat", "") in text


def _two_responses(text: str, asked: Parameters) -> bool:
    # The separator has to separate something.
    return sum(bool(part.replace("*", "").strip()) for part in text.split("******")) >= 2


TABLE_RULES: dict[str, Callable[[str, Parameters], bool]] = {
    "keywords:existence": _existence,
    "keywords:forbidden_words": _forbidden_words,
    "keywords:frequency": _frequency,
    "keywords:letter_frequency": _letter_frequency,
    "length_constraints:number_words": _words,
    "length_constraints:number_sentences": _sentences,
    "length_constraints:number_paragraphs": _paragraphs,
    "detectable_format:json_format": _json,
    "detectable_format:number_bullet_points": _bullets,
    "detectable_format:title": _title,
    "detectable_format:constrained_response": _constrained,
    "detectable_content:number_placeholders": _placeholders,
    "detectable_content:postscript": _postscript,
    "punctuation:no_comma": _no_comma,
    "change_case:english_capital": _english_capital,
    "change_case:english_lowercase": _english_lowercase,
    "startend:end_checker": _ending,
    "combination:repeat_prompt": _repeat_prompt,
    "combination:two_responses": _two_responses,
}
