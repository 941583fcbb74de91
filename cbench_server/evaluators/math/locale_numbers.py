"""Numbers and answer lines as the languages of MGSM write them."""

import re

LANGUAGES = ("bn", "de", "en", "es", "fr", "ja", "ru", "sw", "te", "th", "zh")
# Where a point, a space or an apostrophe parts thousands, and a comma the decimals.
_POINT_THOUSANDS = frozenset({"de", "es", "fr", "ru"})
_SPACES = "\u00a0\u2009\u202f\u2007"
_GROUPED = re.compile(
    rf"(?<![\d.,])(\d{{1,3}})((?:\.\d{{3}})+|(?:[ {_SPACES}]\d{{3}})+|(?:['’]\d{{3}})+)"
    r"(?!\.?\d)"
)
# "Ответ — 18": a dash between the word for answer and a space is no minus.
_DASHED = re.compile(
    r"((?:answer|antwort|respuesta|réponse|ответ|jibu|答案|答え|উত্তর|సమాధానం|คำตอบ)"
    r"[*_ \t]{0,5})[—–―‒-](?=\s)",
    re.IGNORECASE,
)


def as_plain(text: str, language: str) -> str:
    """Return a response with its numbers and answer lines as English would have them."""
    text = _DASHED.sub(r"\1:", text)
    return _GROUPED.sub(_joined, text) if language in _POINT_THOUSANDS else text


def _joined(found: re.Match[str]) -> str:
    return found[1] + re.sub(r"\D", "", found[2])
