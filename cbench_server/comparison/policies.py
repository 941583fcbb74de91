"""Policies of a gate, parsed from sentences."""

import re
import tomllib
from dataclasses import dataclass
from typing import Literal

from cbench_server.errors import InvalidInput

Kind = Literal["at least", "at most", "not worse", "better"]
Unit = Literal["", "points", "%", "s"]

GRAMMAR = (
    "METRIC at least VALUE",
    "METRIC at most VALUE",
    "METRIC not worse than baseline [by more than VALUE]",
    "METRIC better than baseline [by at least VALUE]",
)

# Other names that people use for a quantity.
_ALIASES = {
    "failure rate": "failures",
    "failure_rate": "failures",
    "latency": "mean latency",
    "median latency": "p50 latency",
    "latency p50": "p50 latency",
    "latency p95": "p95 latency",
    "latency p99": "p99 latency",
    "pass_rate": "pass rate",
    "passed": "pass rate",
    "context": "context tokens",
    "context_tokens": "context tokens",
    "context_compression": "context compression",
    "cost_usd": "cost",
}
LOWER_IS_BETTER = frozenset(
    {"failures", "mean latency", "p50 latency", "p95 latency", "p99 latency"}
    | {"context tokens", "cost"}
)
_SHARES = frozenset({"failures", "pass rate", "context compression"})
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}

_VALUE = r"(?P<number>-?(?:\d+(?:\.\d+)?|\.\d+))\s*(?P<unit>points?|%|us|ms|s|min|tokens?|usd)?"
_MEASURED = r"(?P<measured>,?\s+as measured)?"
_DEMANDS: dict[Kind, str] = {
    "not worse": rf"not worse than baseline(?: by more than {_VALUE})?",
    "better": rf"better than baseline(?: by at least {_VALUE})?",
    "at least": rf"at least {_VALUE}",
    "at most": rf"at most {_VALUE}",
}
_FORMS = {
    kind: re.compile(rf"(?P<metric>.+?)\s+(?:is\s+|are\s+)?{demand}{_MEASURED}\s*\.?", re.I)
    for kind, demand in _DEMANDS.items()
}


@dataclass(frozen=True)
class Policy:
    """One demand."""

    text: str
    """As it was written."""
    metric: str
    """A score's name, `score` for the primary one, or one of the other quantities."""
    kind: Kind
    value: float = 0.0
    """A share or a number of seconds, tokens or dollars; with `%` of the baseline, a share."""
    unit: Unit = ""
    as_measured: bool = False
    """Whether the value alone decides, instead of the end of its interval."""

    @property
    def needs_baseline(self) -> bool:
        """Whether there must be another run to compare with."""
        return self.kind in ("not worse", "better")

    @property
    def is_relative(self) -> bool:
        """Whether the value is a share of the baseline's."""
        return self.needs_baseline and self.unit == "%"

    @property
    def lower_is_better(self) -> bool:
        """Whether less of it is better."""
        return self.metric in LOWER_IS_BETTER


def parse_policy(text: str) -> Policy:
    """Read a policy, or raise InvalidInput with the forms that are understood."""
    plain = " ".join(text.split())
    for kind, form in _FORMS.items():
        if found := form.fullmatch(plain):
            name = found["metric"].strip()
            metric = _ALIASES.get(name.lower(), name)
            if metric.lower() in LOWER_IS_BETTER | _SHARES:
                metric = metric.lower()
            written = (found["unit"] or "").lower()
            value, unit = _value(found["number"], written)
            policy = Policy(plain, metric, kind, value, unit, bool(found["measured"]))
            if found["number"]:
                _check_unit(policy, written)
            return policy
    forms = "; ".join(GRAMMAR)
    raise InvalidInput(
        f'cannot read the policy "{plain}". Write one of: {forms}. '
        'For example: "f1 not worse than baseline by more than 1 point".'
    )


def _check_unit(policy: Policy, written: str) -> None:
    """Refuse a value whose unit does not fit, since the policy might then demand nothing."""
    metric, wanted = policy.metric, "points or %, or a number such as 0.6"
    fits = written in ("", "point", "points", "%")
    if metric.endswith(" latency"):
        fits, wanted = written in _SECONDS, "us, ms, s or min"
    elif metric == "context tokens":
        fits, wanted = written in ("", "token", "tokens"), "tokens"
    elif metric == "cost":
        fits, wanted = written in ("", "usd"), "usd"
    elif metric in _SHARES and not written and abs(policy.value) >= 1:
        fits, wanted = False, f"% ({policy.value:g} alone would be {policy.value:.0%})"
    if fits or policy.is_relative:
        return
    if policy.needs_baseline and "%" not in wanted:
        wanted += ", or %"
    raise InvalidInput(f'the policy "{policy.text}" needs its value of {metric} in {wanted}.')


def _value(number: str | None, unit: str) -> tuple[float, Unit]:
    value = float(number or 0.0)
    if unit in _SECONDS:
        return value * _SECONDS[unit], "s"
    if unit.startswith("point"):
        return value / 100, "points"
    if unit == "%":
        return value / 100, "%"
    return value, ""


def read_policies(text: str, name: str) -> list[str]:
    """Read policies: `policies = [...]` in TOML, else one per line, with `#` for comments."""
    if name.endswith(".toml"):
        try:
            found = tomllib.loads(text).get("policies")
        except tomllib.TOMLDecodeError as error:
            raise InvalidInput(f"{name} is not TOML: {error}") from error
        if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
            raise InvalidInput(f'{name} has no top-level list of texts named "policies"')
        policies = found
    else:
        lines = (line.partition("#")[0].strip() for line in text.splitlines())
        policies = [line for line in lines if line]
    if not policies:
        raise InvalidInput(f"{name} has no policies; write one per line")
    return policies
