"""Estimate: a number, and how far it can be trusted."""

from dataclasses import dataclass, replace

SUFFIXES = ("_stderr", "_ci_low", "_ci_high")


@dataclass(frozen=True)
class Estimate:
    """A value with its standard error and 95 % interval; None for what cannot be told."""

    value: float | None = None
    stderr: float | None = None
    low: float | None = None
    high: float | None = None

    def never_negative(self) -> "Estimate":
        """Cut the interval off at 0, for tokens, seconds and money."""
        return self if self.low is None else replace(self, low=max(self.low, 0.0))

    def in_unit(self) -> "Estimate":
        """Cut the interval off at 0 and 1, for scores that lie between them."""
        if self.low is None or self.high is None:
            return self
        return replace(self, low=max(self.low, 0.0), high=min(self.high, 1.0))

    def named(self, key: str) -> dict[str, float | None]:
        """Give the values under the keys of a summary, as `estimate_keys` lists them."""
        values = (self.value, self.stderr, self.low, self.high)
        return dict(zip(estimate_keys(key), values, strict=True))


def estimate_keys(key: str) -> tuple[str, ...]:
    """Return a key and those of its standard error and interval."""
    return (key, *(key + suffix for suffix in SUFFIXES))


def base_key(key: str) -> str:
    """Return the key whose standard error or interval this is, else the key itself."""
    return next((key.removesuffix(suffix) for suffix in SUFFIXES if key.endswith(suffix)), key)
