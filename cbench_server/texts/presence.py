"""Presence of an answer in a text, as somebody who reads the text would find it.

Only the words count, not how they are set: case, punctuation, line breaks,
quotes, markup, JSON escapes and Unicode forms may differ. A phrase is found at
whole words ("no" is not in "know"), numbers as numbers ("35" is not in "3.5" or
"35 million", "1,000" is 1000, and "seven" is 7), and scripts without spaces by characters.

A text becomes one string of tokens with a mark between every two of them, so
that looking for a phrase is one search.
"""

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from cbench_server.texts.number_words import with_digits

# Marks between tokens: a gap, a joint of the answer, and nothing at all ("35mm").
_GAP, _JOINT, _GLUE = " ", "\x1e", "\x1f"
_BETWEEN = _GAP + _JOINT + _GLUE
# Parts of tokens.
_POINT, _MINUS, _ACRONYM = "\x1c", "\x1b", "\x1d"
_MARKS = re.compile("[\x1b-\x1f]")

# Scripts that put no spaces between words, or hang endings on them (Hangul).
_UNSPACED = re.compile(
    "["
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Burmese, Khmer
    "\u3040-\u30ff\u31f0-\u31ff"  # Hiragana, Katakana
    "\u1100-\u11ff\uac00-\ud7af"  # Hangul
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
    "]+"
)
_SEPARATORS = re.compile("[^\\w\x1b-\x1f]+|_+")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
_NUMBER = re.compile(r"(?<!\d)\d++(?:[.,]\d++)++|(?<!\w)\.\d++")
_WHOLE_NUMBER = re.compile(r"[\d,.]+")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_NEGATIVE = re.compile(r"(?<![\w)\]])[-\u2212](?=\.?\d)")
_EDGE_OF_DIGITS = re.compile(r"(?<=[^\W\d_])(?=[\x1b\d])|(?<=\d)(?=[^\W\d_])")
_DOTTED = re.compile(r"(?<![\w.])(?:[^\W\d_]\.){2,}(?:[^\W\d_](?!\w))?")
_CAPITALS = re.compile(r"(?<!\w)[A-Z]{2}(?!\w)")
_INNER = re.compile(r"(?<=\w)[^\w\s,'\u2019](?=\w)")
_DIGITS = re.compile(r"[0-9]+")
_GAPS = re.compile("  +")
_SPELLED_OUT = 10_000
_ARTICLES = ("a", "an", "the")

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([nrtbf])|([^\w\s]))")
_TAG = re.compile(r"<[^<>]{1,200}>[ ]*+")

# Answers that are a judgement about the text and not a part of it.
_VERDICTS = frozenset({"yes", "no", "true", "false", "noanswer", "no answer", "unanswerable"})


class Reading(NamedTuple):
    """How a text is read, which depends on what is looked for in it."""

    joints: str = ""
    """Characters that join its parts, as the hyphen of "Jean-Luc" does: no edges of words."""
    has_acronym: bool = False
    """Whether a part is two letters with points, which must not be found in a plain "us"."""
    has_number: bool = False
    """Whether a part is a number, which a text may have in words."""


_AS_IT_STANDS = Reading()


@dataclass(frozen=True)
class Phrase:
    """An answer to look for."""

    tokens: tuple[str, ...]
    reading: Reading = _AS_IT_STANDS
    cells: tuple[str, ...] = ()
    """What else it may look like: the digits of "1,000" as cells of a table."""

    @property
    def forms(self) -> Iterator[tuple[str, ...]]:
        """All it may look like."""
        yield self.tokens
        if self.cells:
            yield self.cells


def phrase_of(answer: str) -> Phrase | None:
    """Prepare an answer, or return None for one that cannot be looked for.

    Those are answers without words, single letters, and verdicts such as "yes".
    """
    numbered = with_digits(answer.casefold())
    joints = "".join(sorted(set(_INNER.findall(numbered))))
    has_acronym = any(len(found[0].replace(".", "")) == 2 for found in _DOTTED.finditer(answer))
    is_number = _WHOLE_NUMBER.fullmatch(answer.strip()) is not None
    reading = Reading(joints, has_acronym, has_number=_DIGITS.search(numbered) is not None)
    # Spaces around it, for a number that fills a line is taken for cells of a table.
    tokens = _tokens(_canonical(f" {answer} ", reading))
    while tokens and tokens[0] in _ARTICLES:
        del tokens[0]
    words = " ".join(tokens)
    is_letter = len(words) == 1 and words.isalpha() and not _UNSPACED.match(words)
    if not tokens or is_letter or words in _VERDICTS:
        return None
    cells = tuple(_DIGITS.findall(answer)) if is_number and "," in answer else ()
    return Phrase(tuple(tokens), reading, cells)


def passage_of(text: str) -> Phrase | None:
    """Prepare a passage, such as a sentence, of which only the words and numbers count.

    Unlike an answer it has no joints of its own, so that many are looked for in one form of a text.
    """
    tokens = _tokens(_canonical(f" {text} ", _AS_IT_STANDS))
    return Phrase(tuple(tokens)) if tokens else None


class SearchedText:
    """A text in which phrases are looked for."""

    def __init__(self, text: str) -> None:
        self._text = _MARKS.sub(" ", text)
        self._forms: dict[tuple[Reading, bool], str] = {}

    def contains(self, phrase: Phrase) -> bool:
        """Whether the phrase is in the text as it stands, or as its escapes and tags mean it."""
        return any(_is_in(tokens, form) for form in self._views(phrase) for tokens in phrase.forms)

    def recall(self, phrase: Phrase) -> float:
        """Return the share of the phrase's tokens that the text has, in any place."""
        if self.contains(phrase):
            return 1.0
        wanted, most = Counter(phrase.tokens), 0
        for form in self._views(phrase):
            found = Counter(_tokens(form))
            most = max(most, sum(min(count, found[token]) for token, count in wanted.items()))
        return most / len(phrase.tokens)

    def _views(self, phrase: Phrase) -> Iterator[str]:
        yield self._form(self._text, (phrase.reading, False))
        if self._meant is not None:
            yield self._form(self._meant, (phrase.reading, True))

    def _form(self, text: str, key: tuple[Reading, bool]) -> str:
        if key not in self._forms:
            self._forms[key] = _canonical(text, key[0])
        return self._forms[key]

    @cached_property
    def _meant(self) -> str | None:
        """The text that escapes and tags stand for, if there are any."""
        meant = self._text
        if "\\" in meant:
            meant = _ESCAPE.sub(_unescaped, meant)
            # Characters beyond the first plane come as two escapes.
            meant = meant.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if "&" in meant:
            meant = html.unescape(meant)
        if "<" in meant:
            meant = _TAG.sub(_without_tag, meant)
        return None if meant == self._text else _MARKS.sub(" ", meant)


def phrases_of(answers: Iterable[str]) -> list[Phrase]:
    """Prepare those answers that can be looked for."""
    return [phrase for answer in answers if (phrase := phrase_of(answer)) is not None]


def _tokens(canonical: str) -> list[str]:
    return [token for token in _only_gaps(canonical).split(_GAP) if token]


def _only_gaps(canonical: str) -> str:
    return canonical.replace(_JOINT, _GAP).replace(_GLUE, _GAP)


def _is_in(tokens: Sequence[str], canonical: str) -> bool:
    plain, wanted = _only_gaps(canonical), f" {_GAP.join(tokens)} "
    # A character stands for each mark, so places in the two are the same.
    place = plain.find(wanted)
    while place >= 0:
        if canonical[place] == _GAP == canonical[place + len(wanted) - 1]:
            return True
        place = plain.find(wanted, place + 1)
    return False


def _compatible(text: str) -> str:
    """Spell characters out, such as ½; a long text of nothing else stays as it is.

    One of them may stand for eighteen, and a long text that grows so held up all others.
    """
    spelled = unicodedata.normalize("NFKC", text)
    return text if len(spelled) > max(2 * len(text), _SPELLED_OUT) else spelled


def _canonical(text: str, reading: Reading) -> str:
    """Return the tokens of a text with marks between them."""
    joints, has_acronym, has_number = reading
    text = _INVISIBLE.sub("", _compatible(text))
    if has_acronym:
        text = _CAPITALS.sub(lambda found: _ACRONYM + found[0], text)
    if "." in text:
        text = _DOTTED.sub(_acronym(has_acronym), text)
    text = text.casefold()
    if has_number:
        text = with_digits(text)
    text = _NUMBER.sub(_number, text)
    text = _NEGATIVE.sub(_MINUS, text)
    if joints:
        text = re.sub(rf"(?<=\w)[{re.escape(joints)}](?=\w)", _JOINT, text)
    text = _SEPARATORS.sub(_GAP, text)
    text = _EDGE_OF_DIGITS.sub(_GLUE, text)
    if not text.isascii():
        text = _UNSPACED.sub(lambda found: f" {' '.join(found[0])} ", text)
    return _GAPS.sub(_GAP, f" {text} ")


def _acronym(marks_pairs: bool) -> Callable[[re.Match[str]], str]:
    def joined(found: re.Match[str]) -> str:
        letters = found[0].replace(".", "")
        mark = _ACRONYM if marks_pairs and len(letters) == 2 else ""
        # The last point may end a sentence as well.
        return f"{mark}{letters} "

    return joined


def _number(found: re.Match[str]) -> str:
    written = found[0]
    if _THOUSANDS.fullmatch(written) and not _is_in_list(found):
        written = written.replace(",", "")
    parts = []
    for part in written.split(","):
        whole, point, fraction = part.partition(".")
        fraction = fraction.rstrip("0")
        if point and fraction.isdigit():
            parts.append(f"{whole or '0'}{_POINT}{fraction}")
        elif point and not fraction:
            parts.append(whole or "0")
        else:
            parts.append(part.replace(".", " "))
    return " ".join(parts)


def _is_in_list(found: re.Match[str]) -> bool:
    """Whether the commas of a number divide cells or elements, as the text around it shows."""
    text, start, end = found.string, found.start(), found.end()
    before = text[start - 1] if start else "\n"
    after, further = text[end : end + 1] or "\n", text[end + 1 : end + 2]
    is_row = before == "\n" and after in "\r\n"
    is_cell = before == "," or (after == "," and further != "" and not further.isspace())
    return is_row or is_cell or before in "[(" or after in "])"


def _without_tag(found: re.Match[str]) -> str:
    """Leave the space of "seven <b>million</b>" as it is."""
    return "" if found.string[max(found.start() - 1, 0) : found.start()] == " " else " "


def _unescaped(found: re.Match[str]) -> str:
    code, space, other = found.groups()
    if code:
        return chr(int(code, 16))
    return " " if space else str(other)
