"""Columns of tables of rows: those that are there where some row has something for them."""

from typing import Any

from cbench_server.results import COST_UNKNOWN, EvalRow
from cbench_server.texts import numbers

WITHOUT_COLUMN = (
    "scores",
    "metadata",
    "ordinal",
    "usage",
    "reader_usage",
    "details",
    "evaluator_failures",
    "processed",
    "stored_bytes",
    "carried",
    "context_only",
    "not_applicable",
    "handler_seconds",
    "calls_in_flight",
    "alone",
    "finish_reason",
    "groups",
    "traceparent",
    "replica",
)
"""Fields that no table of rows has a column for in every case; the JSON of a row has them."""

_COST = "cost_usd"
_TOKENS = ("prompt_tokens", "completion_tokens")


class Found:
    """Which of the columns some row has something for."""

    def __init__(self) -> None:
        self._scores: set[str] = set()
        self._groups: set[str] = set()
        self._names: set[str] = set()
        self._has_replicas = False

    def see(self, row: EvalRow) -> None:
        """Take note of one row."""
        self._scores.update(row.scores)
        self._groups.update(row.groups)
        if row.total_cost_usd is not None or row.cost_usd or COST_UNKNOWN in row.marks:
            self._names |= {_COST, *(f"{_COST}:{who}" for who in row.cost_usd)}
        self._has_replicas |= bool(row.replica)
        self._names |= {name for name in _TOKENS if row.reported_tokens(name) is not None}

    @property
    def scores(self) -> list[str]:
        """The names of scores."""
        return sorted(self._scores)

    @property
    def groups(self) -> list[str]:
        """The fields by which rows are grouped."""
        return sorted(self._groups)

    @property
    def replica(self) -> list[str]:
        """The column that says which replica answered, if the systems have any."""
        return ["replica"] if self._has_replicas else []

    @property
    def money(self) -> list[str]:
        """Names of columns: tokens, the whole cost, and its parts by who charged them."""
        return [
            *(name for name in _TOKENS if name in self._names),
            *sorted(name for name in self._names if name not in _TOKENS),
        ]


def field_of(row: EvalRow, name: str) -> Any:
    """Return a field of a row; None for the time of a call that was not made."""
    return row.call_seconds if name == "latency" else getattr(row, name)


def value_of(row: EvalRow, column: str) -> float | None:
    """Return what a row has in a column; None where that is not known."""
    if column in _TOKENS:
        return row.reported_tokens(column)
    if column == _COST:
        return row.total_cost_usd
    return row.cost_usd.get(column.removeprefix(f"{_COST}:"))


def cost_line(row: EvalRow) -> str:
    """Say what a row cost, and who charged it; empty if no model has a price."""
    is_unknown = COST_UNKNOWN in row.marks
    parts = [f"{who} {numbers.usd(usd)}" for who, usd in row.cost_usd.items()]
    if is_unknown:
        parts.append("and more that no model told of" if parts else "unknown")
    return ", ".join(parts)
