"""Token counts, identical to tiktoken's and without a network.

A count costs microseconds for a short text and about a millisecond per 50 kB, so long texts
belong on a thread; `TokenCounter` says when the GIL is held.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from threading import Lock
from typing import Any

from cbench_server.errors import UnknownName
from cbench_server.tokens.vocabulary import VOCABULARIES

Tokenizer = Callable[[str], int]

DEFAULT_TOKENIZER = "cl100k_base"
TOKENIZERS = (*VOCABULARIES, "whitespace")

_loaded: dict[str, Tokenizer] = {}
_loading = Lock()


def get_tokenizer(name_or_callable: str | Tokenizer | None = None) -> Tokenizer:
    """Return a function that counts tokens; None means `cl100k_base`.

    A vocabulary is read on the first call that names it (a fraction of a second) and kept
    for the life of the process.
    """
    if callable(name_or_callable):
        return name_or_callable
    name = name_or_callable or DEFAULT_TOKENIZER
    if tokenizer := _loaded.get(name):
        return tokenizer
    if name not in TOKENIZERS:
        raise UnknownName("tokenizer", name, TOKENIZERS)
    with _loading:
        if name not in _loaded:
            _loaded[name] = _load(name)
        return _loaded[name]


def count_tokens(text: str, tokenizer: str | Tokenizer | None = None) -> int:
    """Count the tokens of `text`; what looks like a special token is ordinary text."""
    return get_tokenizer(tokenizer)(text)


def count_tokens_dict(
    d: Mapping[str, Any],
    text_fields: Collection[str] | None = None,
    tokenizer: str | Tokenizer | None = None,
) -> int:
    """Count the tokens of all fields that `count_fields` counts."""
    return sum(count_fields(d, get_tokenizer(tokenizer), text_fields).values())


def count_fields(
    example: Mapping[str, Any],
    tokenizer: Tokenizer,
    text_fields: Collection[str] | None = None,
) -> dict[str, int]:
    """Count each top-level string, and the contents of `turns` together as one field.

    `text_fields` narrows it to those fields (`turns` included); other values are left out.
    """
    return count_fields_like(example, {}, {}, tokenizer, text_fields)


def count_fields_like(
    processed: Mapping[str, Any],
    original: Mapping[str, Any],
    original_counts: Mapping[str, int],
    tokenizer: Tokenizer,
    text_fields: Collection[str] | None = None,
) -> dict[str, int]:
    """Count like `count_fields`, without counting again what equals the original.

    `original_counts` is what `count_fields` made of `original` with the same tokenizer.
    """
    counts = {}
    for field, value in processed.items():
        if text_fields is not None and field not in text_fields:
            continue
        if isinstance(value, str):
            is_known = field in original_counts and value == original.get(field)
            counts[field] = original_counts[field] if is_known else tokenizer(value)
        elif field == "turns" and isinstance(value, list | tuple):
            contents, before = _contents(value), original.get(field)
            is_known = isinstance(before, list | tuple) and contents == _contents(before)
            is_known = is_known and field in original_counts
            counts[field] = original_counts[field] if is_known else sum(map(tokenizer, contents))
    return counts


def _contents(turns: Sequence[Any]) -> list[str]:
    contents = (turn.get("content") if isinstance(turn, Mapping) else turn for turn in turns)
    return [content for content in contents if isinstance(content, str)]


def _load(name: str) -> Tokenizer:
    if name == "whitespace":
        return _count_words
    # Its engine is a native module: not loaded by those who only ask for names.
    from cbench_server.tokens.counting import TokenCounter

    return TokenCounter(VOCABULARIES[name])


def _count_words(text: str) -> int:
    return len(text.split())
