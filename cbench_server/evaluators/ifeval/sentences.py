"""Sentences and words as NLTK splits English, with parameters that come with this package."""

import hashlib
import io
import zipfile
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import islice
from typing import Any

from cbench_server.errors import EvaluatorBroken

PUNKT: Traversable = files("cbench_server.evaluators.ifeval") / "data" / "punkt_english.zip"
PUNKT_SHA256 = "67c06f8ebba834997ec455284853d2f39afcea27b0f021c1de04b15c7f6fa92f"


def count_words(text: str) -> int:
    """Count the runs of letters, digits and underscores."""
    return len(_tokenizers().words.tokenize(text))


def count_sentences(text: str, enough: int) -> int:
    """Count the sentences that punkt finds, and stop when there are `enough`."""
    spans = _tokenizers().sentences.span_tokenize(text)
    return sum(1 for _ in islice(spans, max(enough, 0)))


def count_capital_words(text: str) -> int:
    """Count the tokens of NLTK's word tokenizer that are all in capitals."""
    tokenizers = _tokenizers()
    return sum(
        token.isupper()
        for sentence in tokenizers.sentences.tokenize(text)
        # Tokenizing takes nearly all the time, and a sentence without capitals needs none.
        if sentence != sentence.lower()
        for token in tokenizers.tokens.tokenize(sentence)
    )


def read_punkt(path: Traversable = PUNKT) -> dict[str, list[str]]:
    """Return the lines of each parameter file, or refuse an archive that is not ours."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise _unusable(path, str(error)) from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != PUNKT_SHA256:
        raise _unusable(path, f"its sha256 is {digest}, not {PUNKT_SHA256}")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name).decode().split("\n") for name in archive.namelist()}


class _OrthographicContext(dict[str, int]):
    # NLTK's own table is a defaultdict, which keeps every word it was ever asked for.
    def __missing__(self, word: str) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class _Tokenizers:
    sentences: Any
    words: Any
    tokens: Any


@cache
def _tokenizers() -> _Tokenizers:
    lines = read_punkt()
    # Importing NLTK takes half a second, which only those who need it should pay.
    from nltk.tokenize.destructive import NLTKWordTokenizer
    from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer
    from nltk.tokenize.regexp import RegexpTokenizer

    parameters = PunktParameters()
    parameters.abbrev_types = set(lines["abbrev_types.txt"])
    parameters.sent_starters = set(lines["sent_starters.txt"])
    parameters.collocations = {tuple(line.split("\t")) for line in lines["collocations.tab"]}
    pairs = (line.split("\t") for line in lines["ortho_context.tab"])
    parameters.ortho_context = _OrthographicContext((word, int(flags)) for word, flags in pairs)
    return _Tokenizers(
        PunktSentenceTokenizer(parameters), RegexpTokenizer(r"\w+"), NLTKWordTokenizer()
    )


def _unusable(path: Traversable, why: str) -> EvaluatorBroken:
    return EvaluatorBroken(
        f'the sentence parameters "{path}" cannot be used: {why}. Reinstall cbench-server.'
    )
