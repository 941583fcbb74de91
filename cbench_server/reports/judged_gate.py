"""Gates on judged scores: what a verdict on them has to say, and when judges forbid it."""

from dataclasses import replace

from cbench_server.comparison.gate import Check, check
from cbench_server.comparison.quantities import Measures
from cbench_server.comparison.raters import twins_of
from cbench_server.metrics.stats.estimate import Estimate
from cbench_server.reports.judges import MARK, figure_notes, is_marked, judged_scores
from cbench_server.spec import Run

_LABELLED = "labelled_rate"


def labelled_rates(run: Run, system: str) -> dict[str, Estimate]:
    """Return the rates estimated from labels of people, by the names that policies use."""
    values = run.summary.get(system, {})
    found = {}
    for key, value in values.items():
        if key.startswith(_LABELLED) and f"{key}_ci_low" in values:
            name = key.replace(_LABELLED, "labelled rate", 1)
            ends = (values.get(f"{key}_ci_low"), values.get(f"{key}_ci_high"))
            found[name] = Estimate(value, None, *ends)
    return found


def judged_check(made: Check, measures: Measures, run: Run, baseline: Run | None = None) -> Check:
    """Return a check with what must be said of its judge, and of that of the baseline's run.

    What is better by one judge and worse by another is not better.
    """
    score = _score_of(made, run)
    runs = [run, baseline] if baseline is not None and made.policy.needs_baseline else [run]
    notes = dict.fromkeys(note for each in runs for note in figure_notes(each, [score]))
    text = made.explanation
    if made.passed and made.policy.kind == "better":
        twins = twins_of(score, list(run.config.get("judges") or []))
        for twin in (each for each in twins if all(each in judged_scores(one) for one in runs)):
            other = check(replace(made.policy, metric=twin), measures)
            if (other.measured.value or 0.0) * (made.measured.value or 0.0) < 0:
                text += f" But by {twin} it is the other way: {other.explanation}"
                made = replace(made, verdict="failed")
    if any(is_marked(score, each) for each in runs):
        text = f"{MARK} {text}"
    return replace(made, explanation=" ".join([text, *notes]))


def _score_of(made: Check, run: Run) -> str:
    if made.policy.metric not in ("score", "pass rate"):
        return made.policy.metric
    used = {name for names in run.config.get("headlines", {}).values() for name in names}
    return used.pop() if len(used) == 1 else made.policy.metric
