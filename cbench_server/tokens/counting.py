"""Counting of tokens as tiktoken does it, faster and on any text.

Two engines share one vocabulary. splintr counts everything of ordinary shape; it is several
times faster, but keeps the GIL and its buffers, which grow with the longest unbroken piece.
tiktoken counts the rest. docs/decisions/0002-token-vocabulary.md has the measurements.
"""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING

from splintr import Tokenizer as Splintr

from cbench_server.tokens.vocabulary import Vocabulary, parse_ranks, read_vocabulary

if TYPE_CHECKING:
    import tiktoken

_SLICE = 16_384
_OVERSIZED = 3 * _SLICE

# At these places every piece of both encodings ends: their patterns let a letter be followed
# only by letters, marks or an apostrophe, and a digit only by digits; they look ahead only
# from white space, and never look behind. So the counts of the two parts add up.
_AFTER = r"\x00-\x26\x28-\x2f\x3a-\x40\x5b-\x60\x7b-\x7f\u3001\u3002\uff01\uff0c\uff1f"
_CUT = re.compile(
    rf"[A-Za-z\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fa5\uac00-\ud7a3](?=[0-9{_AFTER}])"
    rf"|[0-9](?=[{_AFTER}])"
)

# tiktoken panics when its regex backtracks over a million white-space characters.
_BACKTRACKABLE = 900_000
_BLANKS = re.compile(r"\s+")

# Beyond this, a stretch that offers no place to cut (no prose, code or data does that) would
# take seconds and fifty times its size to count exactly. It is cut every 16,384 characters all
# the same, which can add a token or two at each cut.
_COUNTED_WHOLE = 2_000_000
_SEARCH_STEP = 65_536

# splintr remembers every piece it has seen, however long, and only bounds their number.
_CHARACTERS_REMEMBERED = 1_000_000


class TokenCounter:
    """Counts the tokens of a text in one encoding; threads may share it.

    Holds the GIL for one slice at a time, well under a millisecond; releases it while
    counting a slice that offers no place to cut (a megabyte of one letter), unless that
    contains nearly a million white-space characters in a row.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        # splintr knows no possessive quantifiers. Here they change speed, not matches: what
        # follows each of them cannot match what it would give back.
        pattern = re.sub(r"([+*?]|\{\d,\d\})\+", r"\1", vocabulary.pattern)
        self._splintr = Splintr.from_bytes(read_vocabulary(vocabulary), pattern)
        # Four bytes per token, and no list of ints: half the time of encode_ordinary. A
        # Splintr made from bytes knows no special tokens, so their spelling is plain text.
        self._encode = self._splintr.encode_flat
        self._remembered = 0

    def __call__(self, text: str) -> int:
        """Count the tokens; a lone surrogate counts as U+FFFD, as in tiktoken."""
        try:
            if len(text) <= _SLICE:
                return self._count_slice(text)
            return sum(map(self._count_slice, _slices(text)))
        except UnicodeEncodeError:
            return self(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))

    def _count_slice(self, text: str) -> int:
        if len(text) > _OVERSIZED:
            return self._count_unbroken(text)
        # Racing threads may lose a few additions; the bound only has to hold roughly.
        self._remembered += len(text)
        if self._remembered > _CHARACTERS_REMEMBERED:
            self._forget()
        return len(self._encode(text)) // 4

    def _count_unbroken(self, text: str) -> int:
        if len(text) > _BACKTRACKABLE and any(
            run.end() - run.start() > _BACKTRACKABLE for run in _BLANKS.finditer(text)
        ):
            # The buffers splintr grows for this belong to the thread, and go with it.
            with ThreadPoolExecutor(max_workers=1) as thread:
                count = len(thread.submit(self._encode, text).result()) // 4
            self._forget()
            return count
        return len(self._tiktoken.encode_ordinary(text))

    def _forget(self) -> None:
        self._splintr.clear_cache()
        self._remembered = 0

    @cached_property
    def _tiktoken(self) -> "tiktoken.Encoding":
        # Forty megabytes that most processes never need. Built twice if threads race, which
        # wastes a moment and harms nothing.
        import tiktoken

        return tiktoken.Encoding(
            self._vocabulary.name,
            pat_str=self._vocabulary.pattern,
            mergeable_ranks=parse_ranks(read_vocabulary(self._vocabulary)),
            special_tokens={},
        )


def _slices(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > _SLICE:
        end = _find_cut(text, start + _SLICE - 1, start + _COUNTED_WHOLE)
        if end is None and len(text) - start <= _COUNTED_WHOLE:
            break
        if end is None:
            end = start + _COUNTED_WHOLE
            for place in range(start, end, _SLICE):
                yield text[place : min(place + _SLICE, end)]
        else:
            yield text[start:end]
        start = end
    yield text[start:]


def _find_cut(text: str, start: int, stop: int) -> int | None:
    """Find the first place to cut, in steps: a search holds the GIL until it ends."""
    while start < min(stop, len(text)):
        if cut := _CUT.search(text, start, min(start + _SEARCH_STEP, stop)):
            return cut.end()
        # The last character was seen without the one after it, so it is looked at again.
        start += _SEARCH_STEP - 1
    return None
