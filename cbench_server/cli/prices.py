"""Prices by flag: what models charge for a million tokens, and the budget of a run."""

import argparse
from collections.abc import Sequence
from typing import Any

from cbench_server.cli.exits import UsageError
from cbench_server.cli.values import number

METAVAR = "IN,OUT[,CACHED]"
HELP = (
    "what it charges in US dollars for a million tokens of prompt and of answer, such as 2.5,10, "
    "and of prompt that it had in its cache (default: as much as other prompt)"
)


def price(text: str) -> dict[str, float]:
    """Read `IN,OUT` or `IN,OUT,CACHED` into a price of a spec."""
    parts = [part.strip() for part in text.split(",")]
    if len(parts) not in (2, 3) or not all(parts):
        raise argparse.ArgumentTypeError(
            f'"{text}" is not a price; write US dollars per million tokens as IN,OUT or '
            "IN,OUT,CACHED, such as 2.5,10 or 2.5,10,1.25."
        )
    amounts = [number(part) for part in parts]
    for part, amount in zip(parts, amounts, strict=True):
        if amount < 0:
            raise argparse.ArgumentTypeError(f'"{part}" in "{text}" is below 0, which no model is.')
    return dict(zip(("input_usd", "output_usd", "cached_input_usd"), amounts, strict=False))


def dollars(text: str) -> float:
    """Read an amount of money above 0."""
    amount = number(text.removeprefix("$"))
    if amount <= 0:
        raise argparse.ArgumentTypeError(
            f'"{text}" is not more than 0; write US dollars such as 2 or 0.5.'
        )
    return amount


def price_at(prices: Sequence[dict[str, float]], place: int, count: int, flag: str) -> Any:
    """Return the price of the model at a place among others: its own, or the one for all."""
    if len(prices) > 1 and len(prices) != count:
        raise UsageError(
            f"there are {len(prices)} {flag} for {count} models; give one for all, or one for each."
        )
    return prices[min(place, len(prices) - 1)] if prices else None


def add_budget(group: Any) -> None:
    """Add the flag of the budget."""
    group.add_argument(
        "--budget-usd",
        metavar="USD",
        type=dollars,
        help="the most that proxies, readers and judges may cost together; systems advance example "
        "by example, and the run stops before one that may cost more. All models need prices",
    )
