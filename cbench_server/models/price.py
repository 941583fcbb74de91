"""Prices of models: what requests cost by their usage, and what they may cost at most.

Money is counted in decimals, exactly; a row keeps each amount as the float nearest to it.
"""

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from cbench_server.errors import InvalidInput
from cbench_server.spec import PriceRef

ZERO = Decimal(0)
_MILLION = Decimal(1_000_000)

PROMPT_MARGIN = Decimal("1.25")
"""How many tokens a model may make of one of ours, unless it has shown to make more of them."""
PROMPT_EXTRA = 32
"""Tokens that a request may have besides its texts, such as the roles of its messages."""
_NAMES = (("prompt_tokens", "completion_tokens"), ("input_tokens", "output_tokens"))


def checked_price(price: PriceRef, whose: str) -> PriceRef:
    """Return a price that can be one; else raise InvalidInput with the value."""
    given = {
        "input_usd": price.input_usd,
        "output_usd": price.output_usd,
        "cached_input_usd": 0.0 if price.cached_input_usd is None else price.cached_input_usd,
    }
    for name, value in given.items():
        if not math.isfinite(value) or value < 0:
            raise InvalidInput(
                f"{name} of {whose} must be US dollars per million tokens, 0 or more, not {value}."
            )
    return price


def tokens_used(usage: Mapping[str, Any] | None) -> tuple[int, int] | None:
    """Return input and output tokens as a server reports them; None where it does not."""
    for names in _NAMES:
        counts = [(usage or {}).get(name) for name in names]
        if all(_is_count(count) for count in counts):
            return int(counts[0] or 0), int(counts[1] or 0)
    return None


def cost_of(price: PriceRef, usage: Mapping[str, Any] | None) -> Decimal | None:
    """Return what a request cost by its usage; None where that does not tell."""
    used = tokens_used(usage)
    if used is None or usage is None:
        return None
    prompt, answer = used
    cached = usage.get("cached_prompt_tokens")
    cached = min(int(cached), prompt) if _is_count(cached) and cached is not None else 0
    cost = (prompt - cached) * _exact(price.input_usd) + cached * _cached_price(price)
    return (cost + answer * _exact(price.output_usd)) / _MILLION


def most_of(price: PriceRef, prompt_tokens: int, answer_tokens: int, margin: Decimal) -> Decimal:
    """Return what a request may cost at most, by our count of its prompt and its token limit."""
    prompt = prompt_tokens * max(margin, PROMPT_MARGIN) + PROMPT_EXTRA
    dearest = max(_exact(price.input_usd), _cached_price(price))
    return (prompt * dearest + answer_tokens * _exact(price.output_usd)) / _MILLION


def exact(usd: float) -> Decimal:
    """Return an amount as it is written, not as a float holds it."""
    return _exact(usd)


def _cached_price(price: PriceRef) -> Decimal:
    known = price.cached_input_usd
    return _exact(price.input_usd if known is None else known)


def _exact(number: float) -> Decimal:
    return Decimal(repr(float(number)))


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
