"""The cost of a run: what its rows cost by who charged it, and what could not be told."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from cbench_server.models.account import OWN_COSTS, Account
from cbench_server.results import COST_UNKNOWN, EvalRow
from cbench_server.runs.run_rows import RunRows
from cbench_server.spec import Run, RunNote

JUDGE_CONTROLS, ASKED_AGAIN = "judge_controls", "asked_again"
_UNKNOWN = {JUDGE_CONTROLS: "controls_unknown", ASKED_AGAIN: "asked_again_unknown"}
"""What is asked beside the rows, and the mark that it is not known in full."""
_SAYS = {
    JUDGE_CONTROLS: "What controls of judges cost is not known in full either.",
    ASKED_AGAIN: "What asking rows again cost is not known in full either.",
}
_ROUNDING = 1e-9
Beside = Mapping[str, Account]
"""Who paid for what was asked beside the rows, by what it was for."""


class Costs:
    """Adds up rows. Sums are those of the rows as they are stored, rounded once."""

    def __init__(self, *, is_rescored: bool = False) -> None:
        self._is_rescored = is_rescored
        self._amounts: dict[str, list[float]] = {}
        self._unknown = 0

    def add(self, rows: Iterable[EvalRow]) -> None:
        """Take rows."""
        for row in rows:
            self._unknown += COST_UNKNOWN in row.marks
            for who, usd in row.cost_usd.items():
                # An earlier run has paid for an answer that is used again.
                is_paid = row.reused or self._is_rescored
                if not (is_paid and who in OWN_COSTS):
                    kind = who if who in OWN_COSTS else "judge"
                    self._amounts.setdefault(kind, []).append(usd)

    def total(self, known: Mapping[str, Any]) -> dict[str, Any]:
        """Return the sums, with what is known of what was asked beside the rows."""
        beside = {kind: [known["by"].get(kind, 0.0)] for kind in _UNKNOWN}
        amounts = {**self._amounts, **beside}
        return {
            "usd": math.fsum([usd for each in amounts.values() for usd in each]),
            "by": {kind: math.fsum(each) for kind, each in amounts.items() if any(each)},
            "rows_unknown": self._unknown,
            **{mark: True for mark in _UNKNOWN.values() if known.get(mark)},
        }


async def run_cost(store: RunRows, run: Run, beside: Beside | None = None) -> dict[str, Any]:
    """Add up the rows of all systems, finished or not, and what was asked beside them."""
    costs = Costs(is_rescored=bool(run.parent_run_id))
    for system in run.systems:
        async for page in store.iterate_rows(run.run_id, system):
            costs.add(page)
    return costs.total(with_beside(run.config, beside or {}))


def with_beside(config: Mapping[str, Any], beside: Beside) -> dict[str, Any]:
    """Add to what is recorded of a run's cost what was asked beside its rows since."""
    known = dict(config.get("cost") or {})
    by = dict(known.get("by") or {})
    for kind, account in beside.items():
        by[kind] = math.fsum([by.get(kind, 0.0), *account.costs.values()])
        if account.has_unknown:
            known[_UNKNOWN[kind]] = True
    return {**known, "by": by}


def cost_note(cost: dict[str, Any], spent: float = 0.0) -> RunNote:
    """Say what a run cost. `spent` counts as well what was set aside and may have been charged."""
    by = ", ".join(f"{kind.replace('_', ' ')} ${usd:.6g}" for kind, usd in cost["by"].items())
    unknown = cost["rows_unknown"]
    beside = [kind for kind in _SAYS if cost.get(_UNKNOWN[kind])]
    # Amounts of rows are rounded each.
    has_lost = spent - cost["usd"] > _ROUNDING
    at_least = "at least " if unknown or beside or has_lost else ""
    parts = [f"This run cost {at_least}${cost['usd']:.6g}" + (f": {by}." if by else ".")]
    if unknown:
        rows = "1 row" if unknown == 1 else f"{unknown:,} rows"
        parts.append(
            f"What {rows} cost is not known in full, for a model did not report its usage."
        )
    parts += [_SAYS[kind] for kind in beside]
    if has_lost:
        parts.append(f"With requests whose answers were lost it is at most ${spent:.6g}.")
    return RunNote("COST", " ".join(parts))
