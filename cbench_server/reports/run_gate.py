"""The gate of a stored run: its policies, checked on one of its systems."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cbench_server.comparison import score_infos
from cbench_server.comparison.gate import Check, check, not_measured
from cbench_server.comparison.policies import Policy
from cbench_server.comparison.quantities import Measures
from cbench_server.errors import InvalidInput
from cbench_server.metrics.verbatim_only import said_of
from cbench_server.reports.judged_gate import judged_check
from cbench_server.reports.stored_runs import Source, check_ranked
from cbench_server.reports.suites import complete_suite
from cbench_server.reports.untold import figure_as_score, untold_estimates
from cbench_server.spec import Run


@dataclass(frozen=True)
class Verdicts:
    """What became of each policy."""

    system: str
    checks: tuple[Check, ...]
    unsuited: frozenset[int] = frozenset()
    """Places of policies that ask for what the rows do not have."""


def gate_run(
    source: Source,
    run: Run,
    policies: Sequence[Policy],
    system: str = "",
    other: Run | None = None,
    baseline_system: str = "",
) -> Verdicts:
    """Check every policy on a system; the baseline is one of another run, or of the same."""
    system = _only_system(run, system, "--system", "system")
    rows = list(source.rows(run.run_id, system))
    against = _baseline(run, system, other, baseline_system)
    baseline = list(source.rows(against[0].run_id, against[1])) if against else None
    measures = Measures(
        rows,
        baseline,
        run.spec.threshold,
        score_infos(run.config.get("datasets", ())),
        # By pairs of rows it is compared all the same, so the baseline's is not told.
        estimates=untold_estimates(run, system) | figure_as_score(run, system),
        baseline_estimates=untold_estimates(*against) if against else None,
        suite=complete_suite(run, system),
    )
    for part in [run, against[0]] if against else [run]:
        if part.partial_note:
            why = f"a gate wants the whole run, and {part.run_id} is a part: {part.partial_note}"
            return Verdicts(system, tuple(not_measured(policy, why) for policy in policies))
    checks, unsuited = [], set()
    for place, policy in enumerate(policies):
        try:
            made = check(policy, measures)
            made = judged_check(made, measures, run, against[0] if against else None)
            checks.append(_verbatim(made, run, system, against))
        except InvalidInput as error:
            # The others' verdicts are wanted all the same, by CI above all.
            unsuited.add(place)
            checks.append(not_measured(policy, str(error)))
    return Verdicts(system, tuple(checks), frozenset(unsuited))


def _verbatim(made: Check, run: Run, system: str, against: tuple[Run, str] | None) -> Check:
    """Add what a figure of evidence says little of: systems that rewrite their text."""
    metric = made.policy.metric
    notes = said_of(run.notes, [system], metric)
    if against and made.policy.needs_baseline:
        notes += said_of(against[0].notes, [against[1]], metric)
    return replace(made, explanation=" ".join([made.explanation, *notes]))


def _only_system(run: Run, wanted: str, flag: str, field: str) -> str:
    if wanted:
        return check_ranked(run, wanted)
    if len(run.ranked) != 1:
        raise InvalidInput(
            f"run {run.run_id} has {len(run.ranked)} systems ({', '.join(run.ranked)}), and none "
            "of them is named.",
            field=field,
            flags=f"Say which one with {flag}.",
        )
    return run.ranked[0]


def _baseline(
    run: Run, system: str, named: Run | None, baseline_system: str
) -> tuple[Run, str] | None:
    """Find the baseline: a system of another run, or another system of the same."""
    if named is None and not baseline_system:
        return None
    other = named or run
    wanted = baseline_system
    if not wanted and system in other.ranked:
        wanted = system
    chosen = _only_system(other, wanted, "--baseline-system", "baseline_system")
    if (other.run_id, chosen) == (run.run_id, system):
        raise InvalidInput(
            f'the baseline is the run itself: "{chosen}" of {run.run_id}. Name another run, '
            "or another of its systems.",
            field="baseline_system",
            flags="They are named with --baseline and --baseline-system.",
        )
    return other, chosen
