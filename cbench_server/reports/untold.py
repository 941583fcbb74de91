"""Estimates for gates that rows alone do not tell: from labels, and from what endpoints report."""

from cbench_server.metrics.stats.estimate import Estimate
from cbench_server.reports.judged_gate import labelled_rates
from cbench_server.spec import Run


def untold_estimates(run: Run, system: str) -> dict[str, Estimate]:
    """Return them by the names that policies use."""
    return labelled_rates(run, system) | _reported(run, system)


def _reported(run: Run, system: str) -> dict[str, Estimate]:
    """Return a proxy's compression; nothing where its rows tell it."""
    values = run.summary.get(system, {})
    key = "reported_compression"
    value = values.get(key)
    if value is None or values.get("context_compression") is not None:
        return {}
    ends = (values.get(f"{key}_ci_low"), values.get(f"{key}_ci_high"))
    return {"context compression": Estimate(value, None, *ends)}
