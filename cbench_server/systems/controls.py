"""Control systems: what doing nothing, cutting blindly or dropping at random would score.

They change `context` and nothing else, so that a compressor can be held
against the crudest thing that saves as much; where a summary is asked for and
no reader writes one, what a truncation keeps is its answer, too. `ratio` is the share of the
context's words to KEEP. A CJK character is a word, an unspaced run of over 64
characters is several, and a context without any white space is cut by
characters.
"""

import random
import re
from collections.abc import Iterator
from hashlib import blake2b
from itertools import islice

from cbench_server.errors import InvalidInput
from cbench_server.types import Example

_CJK = (
    "\u3001-\u303f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff01-\uff60"
    "\U00020000-\U0003ffff"
)
# The length is capped because a million letters with one line break among
# them would otherwise be two words, and could only be kept or dropped whole.
_WORD = re.compile(rf"[{_CJK}]|[^\s{_CJK}]{{1,64}}")
_WORD_AND_SPACE = re.compile(rf"(?:{_WORD.pattern})\s*")
_CHARACTER = re.compile(r".", re.DOTALL)
_SPACE = re.compile(r"\s")

# Words joined at a time: a list of all words of a 50 MB context would take
# several times its size.
_BATCH = 1 << 16


class Identity:
    """Returns every example as it came: the ceiling of quality at no saving."""

    name = "identity"
    version = "1"
    description = "Leaves the context as it is."

    def process(self, example: Example) -> Example:
        return _with_context(example, _context_of(example))


class NoContext:
    """Takes the context away: what a reader answers then, it knew or guessed."""

    name = "no-context"
    version = "1"
    description = "Leaves nothing of the context: what is answered then was known or guessed."

    def process(self, example: Example) -> Example:
        return _with_context(example, "")


class TruncateHead:
    """Drops the head of the context and keeps its end."""

    name = "truncate-head"
    version = "2"
    description = "Drops the beginning of the context and keeps the last `ratio` of its words."

    def __init__(self, *, ratio: float = 0.5) -> None:
        self.ratio = _checked(ratio)

    def process(self, example: Example) -> Example:
        return _with_context(example, keep_end(_context_of(example), self.ratio))


class TruncateTail:
    """Drops the tail of the context and keeps its beginning."""

    name = "truncate-tail"
    version = "2"
    description = "Drops the end of the context and keeps the first `ratio` of its words."

    def __init__(self, *, ratio: float = 0.5) -> None:
        self.ratio = _checked(ratio)

    def process(self, example: Example) -> Example:
        return _with_context(example, keep_beginning(_context_of(example), self.ratio))


class RandomDrop:
    """Drops words at random, the same ones whenever the id and the seed are the same."""

    name = "random-drop"
    version = "1"
    description = (
        "Keeps a random `ratio` of the context's words, in order; the same for equal id and `seed`."
    )

    def __init__(self, *, ratio: float = 0.5, seed: int = 0) -> None:
        self.ratio = _checked(ratio)
        self.seed = seed

    def process(self, example: Example) -> Example:
        generator = random_for(example.get("id"), self.seed)
        return _with_context(example, keep_at_random(_context_of(example), self.ratio, generator))


def keep_beginning(text: str, ratio: float) -> str:
    """Return the first `ratio` of the words, to the nearest word."""
    if not _SPACE.search(text):
        return text[: _share(len(text), ratio)]
    total = _count(_WORD, text)
    kept = _share(total, ratio)
    if kept == total:
        return text
    return text[: _nth(text, kept).end()] if kept else ""


def keep_end(text: str, ratio: float) -> str:
    """Return the last `ratio` of the words, to the nearest word."""
    if not _SPACE.search(text):
        return text[len(text) - _share(len(text), ratio) :]
    total = _count(_WORD, text)
    kept = _share(total, ratio)
    if kept == total:
        return text
    return text[_nth(text, total - kept + 1).start() :] if kept else ""


def keep_at_random(text: str, ratio: float, generator: random.Random) -> str:
    """Return a random `ratio` of the words, to the nearest word, in their order.

    Every choice of words is equally likely. A word goes with the white space
    behind it, so that paragraphs stay apart.
    """
    pattern = _WORD_AND_SPACE if _SPACE.search(text) else _CHARACTER
    total = _count(pattern, text)
    kept = _share(total, ratio)
    if kept == total:
        return text
    words = _sample(pattern, text, total, kept, generator)
    return "".join(iter(lambda: "".join(islice(words, _BATCH)), "")).rstrip()


def _sample(
    pattern: re.Pattern[str], text: str, total: int, kept: int, generator: random.Random
) -> Iterator[str]:
    """Yield exactly `kept` of the `total` matches in one pass (Knuth's algorithm S)."""
    wanted = kept
    for seen, match in enumerate(pattern.finditer(text)):
        if generator.random() * (total - seen) < wanted:
            wanted -= 1
            yield match[0]
            if not wanted:
                return


def random_for(example_id: object, seed: int) -> random.Random:
    """Return the same random numbers whenever the id and the seed are the same."""
    # The id's type is part of it: 1 and "1" are different examples.
    key = repr((type(example_id).__name__, example_id, seed))
    digest = blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return random.Random(int.from_bytes(digest))


def count_words(text: str) -> int:
    """Count what the controls keep or drop: words, or characters where there is no space."""
    return _count(_WORD, text) if _SPACE.search(text) else len(text)


def _count(pattern: re.Pattern[str], text: str) -> int:
    return sum(1 for _ in pattern.finditer(text))


def _nth(text: str, place: int) -> re.Match[str]:
    return next(islice(_WORD.finditer(text), place - 1, None))


def _share(total: int, ratio: float) -> int:
    return int(total * ratio + 0.5)


def _checked(ratio: float) -> float:
    is_number = isinstance(ratio, int | float) and not isinstance(ratio, bool)
    if not is_number or not 0 <= ratio <= 1:
        raise InvalidInput(
            f"ratio is {ratio!r}; it is the share of the context to keep, a number from 0 to 1"
        )
    return float(ratio)


def _context_of(example: Example) -> str:
    context = example.get("context")
    if not isinstance(context, str):
        raise InvalidInput(
            f"context is {type(context).__name__}; a control system can only cut text"
        )
    return context


def _with_context(example: Example, context: str) -> Example:
    processed = {**example, "context": context}
    processed.pop("response", None)
    return processed
