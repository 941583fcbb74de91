"""The cost of some rows of a local evaluation."""

from collections.abc import Mapping, Sequence
from typing import Any

from cbench_server.results import EvalRow
from cbench_server.runs.run_cost import Costs, with_beside


def local_cost(spent: Mapping[str, Any], rows: Sequence[EvalRow]) -> dict[str, Any]:
    """Return what is on record of the cost of a part; nothing where the whole has none."""
    if "cost" not in spent:
        return {}
    costs = Costs()
    costs.add(rows)
    return {"cost": costs.total(with_beside({}, {}))}
