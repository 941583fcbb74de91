"""Which systems of which runs are compared."""

from collections.abc import Iterator, Sequence
from itertools import combinations

from cbench_client import BenchClient
from cbench_server.cli.decode import row_of
from cbench_server.cli.exits import UsageError, did_you_mean
from cbench_server.results import EvalRow
from cbench_server.spec import Run

Side = tuple[str, str]
"""A run's id and a system of it."""


def pairs_in(run: Run, systems: Sequence[str], baseline: str) -> list[tuple[Side, Side]]:
    """Pair the systems of one run, each with each or all with the baseline."""
    chosen = [named(run, name) for name in systems] or list(run.systems)
    if baseline:
        named(run, baseline)
        others = [name for name in chosen if name != baseline]
        pairs = [(name, baseline) for name in others]
    else:
        pairs = list(combinations(dict.fromkeys(chosen), 2))
    if not pairs:
        raise UsageError(
            f"run {run.run_id} has one system to compare, {', '.join(chosen)}. Name a second run, "
            "or another of its systems with --systems."
        )
    return [((run.run_id, a), (run.run_id, b)) for a, b in pairs]


def pairs_across(a: Run, b: Run, systems: Sequence[str]) -> list[tuple[Side, Side]]:
    """Pair systems of two runs: those named, those of the same name, or the only ones."""
    if a.run_id == b.run_id:
        raise UsageError(
            f"both runs are {a.run_id}. Name it once to compare its systems with each other."
        )
    if len(systems) == 2 and systems[0] in a.systems and systems[1] in b.systems:
        return [((a.run_id, systems[0]), (b.run_id, systems[1]))]
    if len(systems) > 1:
        raise UsageError(
            f"with two runs --systems takes one of each: one of {', '.join(a.systems)} of "
            f"{a.run_id}, and one of {', '.join(b.systems)} of {b.run_id}."
        )
    if systems:
        return [((a.run_id, named(a, systems[0])), (b.run_id, named(b, systems[0])))]
    shared = [name for name in a.systems if name in b.systems]
    if not shared and len(a.systems) == len(b.systems) == 1:
        return [((a.run_id, a.systems[0]), (b.run_id, b.systems[0]))]
    if not shared:
        raise UsageError(
            f"runs {a.run_id} ({', '.join(a.systems)}) and {b.run_id} ({', '.join(b.systems)}) "
            "share no system. Say which two to compare with --systems A,B."
        )
    return [((a.run_id, name), (b.run_id, name)) for name in shared]


def named(run: Run, name: str) -> str:
    """Return a system's name if the run has it."""
    if name not in run.systems:
        hint = did_you_mean(name, run.systems) or f" It has: {', '.join(run.systems)}."
        raise UsageError(f'run {run.run_id} has no system "{name}".{hint}')
    return name


def shown_as(pairs: Sequence[tuple[Side, Side]]) -> dict[Side, str]:
    """Name each side: by its system, and by its run where two have the same."""
    sides = list(dict.fromkeys(side for pair in pairs for side in pair))
    systems = [system for _, system in sides]
    return {
        (run_id, system): system if systems.count(system) == 1 else f"{system} ({run_id})"
        for run_id, system in sides
    }


def rows_of(client: BenchClient, side: Side) -> Iterator[EvalRow]:
    """Read the rows of a system from the daemon, page by page."""
    run_id, system = side
    return map(row_of, client.rows(run_id, system=system))
