"""Comparison of the systems of one or two stored runs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from cbench_server.comparison import Comparison
from cbench_server.comparison.comparison import EFFECT
from cbench_server.errors import InvalidInput
from cbench_server.metrics.verbatim_only import said_of
from cbench_server.reports.report import compared_by_judges
from cbench_server.reports.stored_runs import Source, check_ranked, rows_reader, run_differences
from cbench_server.reports.suites import suites_in_all
from cbench_server.reports.sweeps import listed
from cbench_server.spec import Run

Side = tuple[str, str]
"""A run's id and a system of it."""


@dataclass(frozen=True)
class Choice:
    """What to compare, and how."""

    systems: Sequence[str] = ()
    """Only these; with two runs, one of each."""
    baseline: str = ""
    """Compare every other system of the run with this one only."""
    score_field: str = ""
    group_by: Sequence[str] = ()
    effect: float = EFFECT


def compare_runs(source: Source, run: Run, other: Run | None, choice: Choice) -> Comparison:
    """Compare systems of one run, or those of two; raise InvalidInput where nothing compares."""
    if other and choice.baseline:
        raise InvalidInput(
            "a baseline is a system of one run; with two runs name two systems.",
            field="baseline",
            flags="Use --systems A,B instead of --baseline.",
        )
    if choice.effect <= 0:
        raise InvalidInput(f"an effect must be above 0; {choice.effect:g} is not.", field="effect")
    notes: tuple[str, ...] = ()
    if other:
        pairs = _pairs_across(run, other, choice.systems)
        notes = tuple(run_differences(run, other))
    else:
        pairs = _pairs_in(run, choice.systems, choice.baseline)
    runs = [run, other] if other else [run]
    notes += tuple(f"{each.run_id}: {each.partial_note}" for each in runs if each.partial_note)
    sides = {side for pair in pairs for side in pair}
    for each in runs:
        systems = {system for run_id, system in sides if run_id == each.run_id}
        notes += said_of(each.notes, systems, choice.score_field)
    shown = _shown_as(pairs)
    read = {each.run_id: rows_reader(source, each, choice.group_by) for each in runs}
    found = compared_by_judges(
        {name: read[run_id](system) for (run_id, system), name in shown.items()},
        runs,
        suites=suites_in_all(runs),
        group_by=choice.group_by,
        pairs=[(shown[a], shown[b]) for a, b in pairs],
        score_field=choice.score_field or None,
        effect=choice.effect,
    )
    return replace(found, notes=(*notes, *found.notes))


def _pairs_in(run: Run, systems: Sequence[str], baseline: str) -> list[tuple[Side, Side]]:
    """Pair the systems of one run: every two of them, or each with the baseline."""
    chosen = [check_ranked(run, name) for name in systems] or list(listed(run))
    if baseline:
        check_ranked(run, baseline)
        others = [name for name in chosen if name != baseline]
        pairs = [(name, baseline) for name in others]
    else:
        pairs = list(combinations(dict.fromkeys(chosen), 2))
    if not pairs:
        raise InvalidInput(
            f"run {run.run_id} has one system to compare, {', '.join(chosen)}. Name a second run, "
            "or another of its systems.",
            field="systems",
            flags="Systems are named with --systems.",
        )
    return [((run.run_id, a), (run.run_id, b)) for a, b in pairs]


def _pairs_across(a: Run, b: Run, systems: Sequence[str]) -> list[tuple[Side, Side]]:
    """Pair systems of two runs: those named, those of the same name, or the only ones."""
    if a.run_id == b.run_id:
        raise InvalidInput(
            f"both runs are {a.run_id}. Name it once to compare its systems with each other.",
            field="other_run_id",
        )
    if len(systems) == 2 and systems[0] in a.ranked and systems[1] in b.ranked:
        return [((a.run_id, systems[0]), (b.run_id, systems[1]))]
    if len(systems) > 1:
        raise InvalidInput(
            f"with two runs name one system of each: one of {', '.join(a.ranked)} of "
            f"{a.run_id}, and one of {', '.join(b.ranked)} of {b.run_id}.",
            field="systems",
            flags="They are named with --systems A,B.",
        )
    if systems:
        return [((a.run_id, check_ranked(a, systems[0])), (b.run_id, check_ranked(b, systems[0])))]
    shared = [name for name in a.ranked if name in b.ranked]
    if not shared and len(a.ranked) == len(b.ranked) == 1:
        return [((a.run_id, a.ranked[0]), (b.run_id, b.ranked[0]))]
    if not shared:
        raise InvalidInput(
            f"runs {a.run_id} ({', '.join(a.ranked)}) and {b.run_id} ({', '.join(b.ranked)}) "
            "share no system. Say which two to compare.",
            field="systems",
            flags="They are named with --systems A,B.",
        )
    return [((a.run_id, name), (b.run_id, name)) for name in shared]


def _shown_as(pairs: Sequence[tuple[Side, Side]]) -> dict[Side, str]:
    """Name each side by its system, and by its run where two have the same name."""
    sides = list(dict.fromkeys(side for pair in pairs for side in pair))
    systems = [system for _, system in sides]
    return {
        (run_id, system): system if systems.count(system) == 1 else f"{system} ({run_id})"
        for run_id, system in sides
    }
