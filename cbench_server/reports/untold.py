"""Estimates for gates that rows alone do not tell: from labels, and from what endpoints report."""

from cbench_server.metrics.stats.estimate import Estimate, estimate_keys
from cbench_server.reports.judged_gate import labelled_rates
from cbench_server.reports.suites import own_figure
from cbench_server.spec import Run


def untold_estimates(run: Run, system: str) -> dict[str, Estimate]:
    """Return them by the names that policies use."""
    return labelled_rates(run, system) | _reported(run, system) | _figure(run, system)


def _figure(run: Run, system: str) -> dict[str, Estimate]:
    """Return the figure of a run by its key, where it is not the mean of a score.

    It is none where rows could not be scored.
    """
    key, values = own_figure(run), run.summary.get(system, {})
    if not key:
        return {}
    found = [values.get(each) for each in estimate_keys(key)]
    return {key: Estimate() if values.get("num_unscored") else Estimate(*found)}


def figure_as_score(run: Run, system: str) -> dict[str, Estimate]:
    """Return that figure as the `score`."""
    found = [*_figure(run, system).values()]
    return {"score": found[0]} if found else {}


def _reported(run: Run, system: str) -> dict[str, Estimate]:
    """Return a proxy's compression; nothing where its rows tell it."""
    values = run.summary.get(system, {})
    key = "reported_compression"
    value = values.get(key)
    if value is None or values.get("context_compression") is not None:
        return {}
    ends = (values.get(f"{key}_ci_low"), values.get(f"{key}_ci_high"))
    return {"context compression": Estimate(value, None, *ends)}
