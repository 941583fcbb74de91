"""The letter of a multiple-choice question that a response settles on."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cbench_server.evaluators.choice.letter_patterns import (
    HYPOTHETICAL,
    MARK,
    NEGATED_AFTER,
    NEGATED_VERB,
    NEXT_QUESTION,
    SENTENCE_END,
    UNMARK,
    Patterns,
    patterns,
)
from cbench_server.evaluators.choice.option_texts import OptionTexts

_LATEX_TEXT = re.compile(r"\\(?:text(?:bf|it|rm)?|math(?:bf|it|rm)|mbox|bf|rm)\s*\{([^{}]*)\}")
_EMPHASISED = re.compile(
    r"(\*{1,3}|__)\s{0,3}\(?([A-Za-z])\)?(?=[.:)]?\s{0,3}\1|[.:)]\s[^*_\n]{0,200}\1)"
)
# "A: (B)", as in a list of questions and answers; that A is not a choice.
_ANSWER_HEAD = re.compile(rf"\s*A:\s{{1,9}}(?=[(\[{MARK}]?[A-Z]\b)")
_MARKUP = re.compile(r"\*+|__|`+|\$+|\\[()\[\]]|\\,")
_ALPHANUMERIC = re.compile(r"[^\W_]")
_LOOK_BACK = 120
_LOOK_AHEAD = 300
# No response settles on a letter in the middle of a very long text.
_HEAD = 2_000
_TAIL = 8_000


@dataclass(frozen=True, slots=True)
class Choice:
    """A letter, and how the response gave it; or None, and why there is none."""

    letter: str | None
    how: str


@dataclass(frozen=True, slots=True)
class _Found:
    """A letter at a place in the text."""

    start: int
    end: int
    letter: str


def extract_choice(response: str, letters: str, options: Sequence[str] = ()) -> Choice:
    """Return the choice among `letters`, capitals from A on; `options` are their texts, if known.

    An explicit statement beats a verdict on a letter, that beats an option
    spoken of, that a letter that merely stands there, and that the text of an
    option. Within each the last one wins, since models reason before they settle.
    """
    text = cleaned(response)
    if not text:
        return Choice(None, "the response is empty")
    finder = _Finder(text, patterns(letters), OptionTexts(options[: len(letters)]))
    return finder.choice()


def cleaned(response: str) -> str:
    """Return the text without markup, emphasised letters marked; a long text loses its middle."""
    if len(response) > _HEAD + _TAIL:
        response = f"{response[:_HEAD]}\n{response[-_TAIL:]}"
    text = response if response.isascii() else unicodedata.normalize("NFKC", response)
    text = text.replace(MARK, " ").replace(UNMARK, " ")
    if "\\" in text:
        text = _LATEX_TEXT.sub(r"\1", _LATEX_TEXT.sub(r"\1", text))
    text = _EMPHASISED.sub(rf"{MARK}\2{UNMARK}", text)
    text = _MARKUP.sub("", text).strip()
    head = _ANSWER_HEAD.match(text)
    return text[head.end() :] if head else text


class _Finder:
    def __init__(self, text: str, known: Patterns, options: OptionTexts) -> None:
        self._text = text
        self._known = known
        self._options = options
        self._hedged = False
        self._affirmed: dict[int, bool] = {}

    def choice(self) -> Choice:
        lone = self._known.lone.fullmatch(self._text)
        if lone is not None:
            return Choice(lone["letter"].upper(), "letter alone")
        if (found := self._statement()) is not None:
            return Choice(found.letter, "statement")
        if self._hedged:
            return Choice(None, "several letters are given as the answer")
        headings = list(self._known.heading.finditer(self._text))
        is_listing = len({match["letter"] for match in headings}) > 1
        if headings and not is_listing and headings[0].start() == 0:
            return Choice(headings[0]["letter"], "begins with the letter")
        listed = {match.start("letter") for match in headings} if is_listing else set()
        verdicts = [*self._all(self._known.verdicts), *self._all([self._known.lone])]
        for how, found_here in (
            ("verdict", verdicts),
            ("option named", self._all(self._known.named)),
        ):
            if (found := self._last_affirmed(found_here, listed)) is not None:
                return Choice(found.letter, how)
        within = self._options.positions(self._text) | listed
        mentions = self._all(self._known.mentions)
        if (found := self._last_affirmed(mentions, within)) is not None:
            return Choice(found.letter, "letter mentioned")
        return self._by_text()

    def _by_text(self) -> Choice:
        present = self._options.present(self._text)
        if len(present) == 1:
            return Choice(present.pop(), "option's text")
        if present:
            return Choice(None, "the texts of several options appear, and no letter")
        return Choice(None, "no letter and no option's text")

    def _statement(self) -> _Found | None:
        stated = list(self._stated())
        announced = self._announced({each.start for each in stated})
        found = sorted([*stated, *announced], key=lambda each: each.end)
        if not found:
            return None
        # A base model may go on to invent the next question and answer that one, too.
        following = NEXT_QUESTION.search(self._text, found[0].end)
        if following is not None:
            found = [each for each in found if each.end <= following.start()]
        return found[-1]

    def _stated(self) -> Iterator[_Found]:
        for pattern in self._known.statements:
            for match in pattern.finditer(self._text):
                found = _Found(match.start("letter"), match.end("letter"), match["letter"].upper())
                before = self._text[max(0, match.start() - _LOOK_BACK) : match.start()]
                after = self._text[found.end : found.end + _LOOK_AHEAD]
                verb_at = match.end("between") if "between" in pattern.groupindex else match.start()
                if HYPOTHETICAL.search(before) or self._is_negated(verb_at):
                    continue
                if after.startswith("?") or self._options.begins_with_letter(
                    self._text, found.start
                ):
                    continue
                if self._known.several.match(after):
                    self._hedged = True
                    continue
                yield found

    def _announced(self, stated: set[int]) -> Iterator[_Found]:
        """Answers announced in words: the text of an option, or a letter later in the sentence."""
        seen: set[int] = set()
        ends = [match.end() for match in self._cues()]
        next_word = self._next_words(ends)
        for end in ends:
            start = next_word[end]
            # Many cues in a row lead to one word, which is looked at once.
            if start in stated or start in seen:
                continue
            seen.add(start)
            if letter := self._options.at(self._text, start):
                yield _Found(start, start, letter)
                continue
            stop = SENTENCE_END.search(self._text, start, start + _LOOK_AHEAD)
            last = stop.start() if stop else min(len(self._text), start + _LOOK_AHEAD)
            rest = _Span(start, last)
            named = [
                *self._all(self._known.named, rest),
                *self._all(self._known.mentions[1:], rest),
            ]
            affirmed = [found for found in named if self._is_affirmed(found)]
            if len({found.letter for found in affirmed}) == 1:
                yield affirmed[-1]

    def _next_words(self, places: Iterable[int]) -> dict[int, int]:
        """Tell where the next word begins after each place, in one pass over the text."""
        found: dict[int, int] = {}
        start = -1
        for place in sorted(places):
            if place > start:
                match = _ALPHANUMERIC.search(self._text, place)
                start = match.start() if match else len(self._text)
            found[place] = start
        return found

    def _cues(self) -> Iterator[re.Match[str]]:
        for pattern in self._known.cues:
            has_verb = "between" in pattern.groupindex
            for match in pattern.finditer(self._text):
                if not (has_verb and self._is_negated(match.end("between"))):
                    yield match

    def _all(self, wanted: Iterable[re.Pattern[str]], span: "_Span | None" = None) -> list[_Found]:
        start, end = (span.start, span.end) if span else (0, len(self._text))
        return [
            _Found(match.start("letter"), match.end("letter"), match["letter"].upper())
            for pattern in wanted
            for match in pattern.finditer(self._text, start, end)
        ]

    def _last_affirmed(self, found: Iterable[_Found], passed_over: set[int]) -> _Found | None:
        for each in sorted(found, key=lambda each: each.end, reverse=True):
            if each.start not in passed_over and self._is_affirmed(each):
                return each
        return None

    def _is_negated(self, verb_at: int) -> bool:
        return bool(NEGATED_VERB.search(self._text[max(0, verb_at - 30) : max(0, verb_at)]))

    def _is_affirmed(self, found: _Found) -> bool:
        if found.start not in self._affirmed:
            before = self._text[max(0, found.start - _LOOK_BACK) : found.start]
            self._affirmed[found.start] = not (
                self._known.negated_before.search(before)
                or NEGATED_AFTER.match(self._text, found.end)
            )
        return self._affirmed[found.start]


@dataclass(frozen=True, slots=True)
class _Span:
    start: int
    end: int


def offered(choices: object) -> list[str]:
    """Return the options' texts in order; none where `choices` is of no known form.

    Known are a list of texts, the hub's `{"text": [...], "label": [...]}`, and
    a mapping from letters to texts.
    """
    if isinstance(choices, Mapping):
        texts = choices.get("text")
        if texts is None and all(isinstance(key, str) and len(key) == 1 for key in choices):
            texts = [choices[key] for key in sorted(choices)]
        choices = texts
    if not isinstance(choices, list | tuple):
        return []
    return [str(choice) for choice in choices]
