"""Cuts to a number of tokens: what the crudest way of shortening leaves at a given length."""

from collections.abc import Callable
from functools import partial

from cbench_server.systems.controls import (
    count_words,
    keep_at_random,
    keep_beginning,
    keep_end,
    random_for,
)
from cbench_server.tokens import Tokenizer

CUTS = ("truncate-tail", "truncate-head", "random-drop")
"""The ways of cutting, by the names of the controls that cut by a share of the words."""


def cut_to(
    text: str, tokens: int, cut: str, tokenizer: Tokenizer, example_id: object, seed: int
) -> str:
    """Return as much of a text as has `tokens` tokens, or one word less than one too many.

    Words are kept from its beginning, from its end or at random, as `cut` says.
    """
    ways: dict[str, Callable[[float], str]] = {
        "truncate-tail": partial(keep_beginning, text),
        "truncate-head": partial(keep_end, text),
        "random-drop": lambda share: keep_at_random(text, share, random_for(example_id, seed)),
    }
    keep = ways[cut]
    have = tokenizer(text)
    if tokens >= have:
        return text
    words = count_words(text)
    # `low` words fit, `high` do not. Lengths are nearly proportional to words, so a guess by
    # proportion comes close at once; halving in turn with it bounds the number of steps.
    low, low_tokens, high, high_tokens = 0, 0, words, have
    best, is_guess = "", True
    while high - low > 1:
        share = (tokens - low_tokens) / max(1, high_tokens - low_tokens)
        middle = low + int(share * (high - low)) if is_guess else (low + high) // 2
        middle = min(max(middle, low + 1), high - 1)
        kept = keep(middle / words)
        length = tokenizer(kept)
        if length <= tokens:
            low, low_tokens, best = middle, length, kept
        else:
            high, high_tokens = middle, length
        is_guess = not is_guess
        if length == tokens:
            break
    return best
