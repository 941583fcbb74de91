"""Sentences about a comparison that claim no more than it shows."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cbench_server.comparison.values import PairedDifference


def sentence(pair: "PairedDifference") -> str:
    """Say which of the two is better, or that nothing can be claimed and what it would take."""
    if pair.wins == pair.losses == 0:
        on = "the only example" if pair.examples == 1 else f"all {pair.examples:,} examples"
        claim = f"{pair.a} and {pair.b} have the same {pair.score} on {on}"
        return _with_tokens(claim, pair, pair.a)
    if not pair.is_claimed:
        return _no_claim(pair)
    value, low, high = pair.difference.value, pair.difference.low, pair.difference.high
    assert value is not None
    assert low is not None
    assert high is not None
    better, worse = (pair.a, pair.b) if pair.is_a_better else (pair.b, pair.a)
    ends = (low, high) if value > 0 else (-high, -low)
    claim = (
        f"{better} is better than {worse} on {pair.score} by {amount(abs(value), pair)} "
        f"(95% CI {number(ends[0], pair)} to {number(ends[1], pair)}, {p_text(pair)})"
    )
    return _with_tokens(claim, pair, better)


def _no_claim(pair: "PairedDifference") -> str:
    value, low, high = pair.difference.value, pair.difference.low, pair.difference.high
    assert value is not None
    measured = f"{pair.a} against {pair.b} on {pair.score}: {signed(value, pair)}"
    if low is not None and high is not None:
        measured += f" (95% CI {number(low, pair)} to {number(high, pair)}, {p_text(pair)})"
    if pair.disputed:
        return f"{measured}. Another judge orders them the other way: neither is called better."
    wanted = amount(pair.effect, pair)
    if pair.more_examples is None:
        few = "1 example is" if pair.examples == 1 else f"{pair.examples:,} examples are"
        return f"{measured}. No difference can be claimed; {few} too few."
    if pair.more_examples == 0:
        return (
            f"{measured}. No difference can be claimed; one of {wanted} would probably have shown."
        )
    more = about(pair.more_examples)
    return (
        f"{measured}. No difference can be claimed; about {more:,} more examples would be needed "
        f"to see {wanted}."
    )


def _with_tokens(claim: str, pair: "PairedDifference", who: str) -> str:
    """Add how many context tokens the better one uses; of equals, the first."""
    changes = (cost.change.value for cost in pair.costs if cost.axis == "context_tokens")
    change = next(changes, None)
    if change is None or change <= -1:
        return f"{claim}."
    if who != pair.a:
        change = 1 / (1 + change) - 1
    if abs(change) < 0.005:
        return f"{claim}, with as many context tokens."
    subject = "" if pair.is_claimed else f"{who} "
    less = "fewer" if change < 0 else "more"
    return f"{claim} and {subject}uses {abs(change):.0%} {less} context tokens."


def number(value: float, pair: "PairedDifference") -> str:
    """Write a difference without its unit: points have one decimal, other scores three."""
    text = f"{value * 100:.1f}" if pair.in_points else f"{value:.3g}"
    return text.removeprefix("-") if not float(text) else text


def amount(value: float, pair: "PairedDifference") -> str:
    """Write a difference with its unit."""
    text = number(value, pair)
    if not pair.in_points:
        return text
    text = text.removesuffix(".0")
    return f"{text} point" if text == "1" else f"{text} points"


def signed(value: float, pair: "PairedDifference") -> str:
    """Write a difference with its unit and sign."""
    return ("+" if value > 0 else "") + amount(value, pair)


def p_text(pair: "PairedDifference") -> str:
    """Write p, and what it was corrected for."""
    value = p_value(pair)
    text = f"p{value}" if value.startswith("<") else f"p={value}"
    if pair.comparisons > 1:
        text += f" after Holm for {pair.comparisons} comparisons"
    return text


def p_value(pair: "PairedDifference") -> str:
    """Write p alone: `0.012`, or `<0.001`."""
    p = pair.p_adjusted
    return "<0.001" if p < 0.001 else f"{p:.3f}" if p < 0.0995 else f"{p:.2f}"


def about(count: int) -> int:
    """Round to one digit, or to two if the first is 1: more would be false precision."""
    digits = 2 if str(count)[0] == "1" else 1
    return round(count, digits - len(str(count))) if count >= 10 else count
