"""Extraction of a letter by the rules of one benchmark's own grader, where its number is wanted."""

import random
import re
import string
import unicodedata
from collections.abc import Callable, Sequence

from cbench_server.evaluators.choice.answer_letter import Choice

Extract = Callable[[str, str, Sequence[str]], Choice]
"""From a response, the letters on offer and the options' texts to a choice."""


class _Kept(dict[int, int | None]):
    """What becomes of each character, looked up when it is first met."""

    def __missing__(self, code: int) -> int | None:
        self[code] = None if unicodedata.category(chr(code)).startswith("P") else code
        return self[code]


_KEPT = _Kept()
_IN_BRACKETS = re.compile(r"\(([A-Z])\)")
_PRO_STATED = re.compile(r"answer is \(?([A-J])\)?")
_PRO_LABELLED = re.compile(r"[aA]nswer:\s*([A-J])")
_PRO_ALONE = re.compile(r"\b[A-J]\b")
_PRO_SEED = 12345
_V2_BRACKETS = re.compile(r"The correct answer is \(([A-D])\)")
_V2_BARE = re.compile(r"The correct answer is ([A-D])")
_FIRST_ALONE = re.compile(r"\b[A-D]\b")
_DELETE_PUNCTUATION = str.maketrans("", "", string.punctuation)


def by_lm_eval(response: str, letters: str, options: Sequence[str]) -> Choice:
    """Extract as lm-eval's `flexible-extract` does for GPQA and MMLU.

    The last `(X)`; failing that, the option whose text appears last; failing
    that, the last letter after a colon.
    """
    if found := _IN_BRACKETS.findall(response):
        return Choice(found[-1], "last letter in brackets")
    # Of equal texts the last one counts, and of those that begin alike the first one.
    texts = {
        _bare(option.strip()): letter for option, letter in zip(options, letters, strict=False)
    }
    if texts:
        named = re.findall("|".join(map(re.escape, texts)), _bare(response))
        if named and (last := named[-1].strip()):
            return Choice(texts.get(last), "last option's text")
    if labelled := re.findall(rf":\s*([{letters}])", response):
        return Choice(labelled[-1], "last letter after a colon")
    return Choice(None, "no letter by the rules of lm-eval")


def by_mmlu_pro(response: str, letters: str, options: Sequence[str]) -> Choice:
    """Extract by MMLU-Pro's three patterns in their order.

    Its grader then guesses a letter at random where none is found; here there is none.
    """
    if stated := _PRO_STATED.search(response):
        return Choice(stated[1], "first statement")
    if labelled := _last_in_first_line(_PRO_LABELLED, response):
        return Choice(labelled[1], "label")
    if alone := _PRO_ALONE.findall(response):
        return Choice(alone[-1], "last letter")
    return Choice(None, "no letter by the rules of MMLU-Pro")


def by_mmlu_pro_published(response: str, letters: str, options: Sequence[str]) -> Choice:
    """Extract as the tables that MMLU-Pro's authors published were made.

    Their grader of 2024 had the first two patterns only, and seeded its generator anew for every
    guess: the guess depends on nothing but the number of options.
    """
    choice = by_mmlu_pro(response, letters, options)
    if choice.how in ("first statement", "label"):
        return choice
    guess = random.Random(_PRO_SEED).randint(0, len(letters) - 1)
    return Choice(letters[guess], "the grader's guess")


def by_longbench_v2(response: str, letters: str, options: Sequence[str]) -> Choice:
    """Extract what follows "The correct answer is", in brackets or not, as LongBench v2 does."""
    text = response.replace("*", "")
    if found := _V2_BRACKETS.search(text) or _V2_BARE.search(text):
        return Choice(found[1], "statement")
    return Choice(None, "no letter by the rules of LongBench v2")


def by_mmlu_generative(response: str, letters: str, options: Sequence[str]) -> Choice:
    """Take a first line that is nothing but a letter, as lm-eval's `mmlu_generative` does."""
    return _bare_letter(response.partition("</s>")[0].partition("\n")[0], letters)


def by_arc_chat(response: str, letters: str, options: Sequence[str]) -> Choice:
    """Take a letter that stands alone up to the first full stop or empty line.

    lm-eval's `arc_challenge_chat` ends the model's answer there.
    """
    return _bare_letter(response.partition("\n\n")[0].partition(".")[0], letters)


def by_zero_scrolls(response: str, letters: str, options: Sequence[str]) -> Choice:
    """Take the first letter from A to D that stands alone, as ZeroSCROLLS does for QuALITY."""
    if found := _FIRST_ALONE.search(response):
        return Choice(found[0], "first letter")
    return Choice(None, "no letter by the rules of ZeroSCROLLS")


EXTRACTIONS: dict[str, Extract] = {
    "lm-eval": by_lm_eval,
    "mmlu-pro": by_mmlu_pro,
    "mmlu-pro-published": by_mmlu_pro_published,
    "longbench-v2": by_longbench_v2,
    "mmlu-generative": by_mmlu_generative,
    "arc-chat": by_arc_chat,
    "zero-scrolls": by_zero_scrolls,
}
"""Rules by the name that `extraction` gives them."""


def _bare_letter(text: str, letters: str) -> Choice:
    """Read a text that is a letter but for case, punctuation and the space around it."""
    text = text.strip().lower().translate(_DELETE_PUNCTUATION)
    if len(text) == 1 and text in letters.lower():
        return Choice(text.upper(), "letter alone")
    return Choice(None, "more or less than a letter")


def _last_in_first_line(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """Return the last match that begins in the first line in which one begins.

    That is what `.*` before the pattern comes to, without its quadratic time.
    """
    last = pattern.search(text)
    if last is None:
        return None
    line_end = text.find("\n", last.start())
    end = len(text) if line_end < 0 else line_end
    while (later := pattern.search(text, last.start() + 1)) and later.start() < end:
        last = later
    return last


def _bare(text: str) -> str:
    """Return a text in small letters and without punctuation of any script."""
    return text.lower().translate(_KEPT)
