"""Fitting a text to a number of tokens."""

from collections.abc import Callable

from cbench_server.tokens import count_tokens

_TRIES = 12


def fitted(build: Callable[[int], str], tokens: int, *, least: int = 1) -> str:
    """Return the text that `build` makes of about as many units as fit into `tokens`.

    More units have to make a longer text. Where `least` units are too long, they
    are the text all the same.
    """
    low, text = least, build(least)
    low_count = count_tokens(text)
    high, high_count = 0, 0
    # What one more unit adds is known after two texts; some of each is there without any.
    before, before_count = 0, 0
    for _ in range(_TRIES):
        if low_count * 200 >= tokens * 199 or high - low == 1:
            break
        other, other_count = (high, high_count) if high else (before, before_count)
        step = (tokens - low_count) * abs(other - low) // max(abs(other_count - low_count), 1)
        guess = low + max(step, 1)
        if high:
            guess = min(guess, high - 1)
        candidate = build(guess)
        count = count_tokens(candidate)
        if count <= tokens:
            before, before_count = low, low_count
            low, low_count, text = guess, count, candidate
        else:
            high, high_count = guess, count
    return text
