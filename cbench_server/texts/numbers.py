"""Numbers as a person reads them; what has no value is a dash."""

import math

MISSING = "—"


def is_missing(value: float | None) -> bool:
    """Whether there is nothing to show: no value, or one that is infinite or undefined."""
    return value is None or not math.isfinite(value)


def score(value: float | None) -> str:
    """Three decimals: `0.812`."""
    return MISSING if value is None or is_missing(value) else f"{value:.3f}"


def interval(low: float | None, high: float | None) -> str:
    """The two ends of an interval of scores: `0.80–0.94`."""
    if low is None or high is None or is_missing(low) or is_missing(high):
        return MISSING
    return f"{low:.2f}–{high:.2f}"


def share(value: float | None) -> str:
    """A percentage: `61.3%`."""
    return MISSING if value is None or is_missing(value) else f"{value * 100:.1f}%"


def change(value: float | None) -> str:
    """A change as a signed percentage: `-49.4%`, `+3.0%`, `0.0%`."""
    if value is None or is_missing(value):
        return MISSING
    text = f"{value * 100:+.1f}%"
    return "0.0%" if text in ("+0.0%", "-0.0%") else text


def count(value: float | None) -> str:
    """A whole number with separators: `12,345`."""
    return MISSING if value is None or is_missing(value) else f"{value:,.0f}"


def seconds(value: float | None) -> str:
    """A span in the unit that suits it: `820 us`, `12 ms`, `3.4 s`, `5 min 02 s`."""
    if value is None or is_missing(value):
        return MISSING
    if value < 0.001:
        return f"{value * 1e6:.0f} us"
    if value < 0.01:
        return f"{value * 1e3:.1f} ms"
    if value < 0.9995:
        return f"{value * 1e3:.0f} ms"
    if value < 99.95:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 100:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def usd(value: float | None) -> str:
    """An amount of money with three digits that say something: `$12.30`, `$0.0151`."""
    if value is None or is_missing(value):
        return MISSING
    if value == 0 or abs(value) >= 1:
        return f"${value:,.2f}"
    digits = 2 - math.floor(math.log10(abs(value)))
    return f"${value:.{digits}f}".rstrip("0")


def dollars(value: float | None) -> str:
    """The same without the sign, for a column that has it: `0.0151`."""
    return usd(value).removeprefix("$")


def of_metric(key: str, value: float | None) -> str:
    """A value of a metric: a count without decimals, money as such, anything else with four."""
    if key.startswith("num_") or key == "pareto_rank":
        return count(value)
    if key.endswith("_usd"):
        return usd(value)
    return MISSING if value is None or is_missing(value) else f"{value:.4f}"


def plain(value: float | None) -> str:
    """Four decimals, or none where the number is whole and large: `0.8125`, `1234`."""
    if value is None or is_missing(value):
        return MISSING
    return f"{value:.0f}" if value == int(value) and abs(value) >= 2 else f"{value:.4f}"
