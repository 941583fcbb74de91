"""Notes on a sweep: the curve of its points, and what share of the context is enough."""

import asyncio
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from cbench_server.comparison.raters import as_proven
from cbench_server.errors import InvalidInput
from cbench_server.metrics.outcomes import score_infos
from cbench_server.results import EvalRow, Summary
from cbench_server.runs.concluded_rows import ConcludedRows
from cbench_server.runs.controls import controls_of
from cbench_server.spec import Run, RunNote
from cbench_server.texts import numbers

SWEEP = "SWEEP"
SWEEP_FLAT = "SWEEP_FLAT"
DRAWN = 100_000
"""The most rows of arms from which a curve is drawn when a run ends."""


@dataclass(frozen=True)
class Swept:
    """What a sweep showed: the record for the run's config, and what to say of it."""

    config: dict[str, Any] = field(default_factory=dict)
    notes: tuple[RunNote, ...] = ()


async def swept(known: ConcludedRows, run: Run, summary: Summary) -> Swept:
    """Draw the curve of a run that has a sweep."""
    asked: dict[str, Any] | None = run.config.get("sweep")
    if not asked or not run.completed_rows:
        return Swept()
    values = dict(asked["points"])
    cuts = [control for control in controls_of(run) if control.leader in values]
    names = [*values, *([asked["whole"]] if asked["whole"] else []), *(cut.name for cut in cuts)]
    count = sum(run.progress[name].completed for name in names if name in run.progress)
    if count > DRAWN:
        return _said(asked, f"The sweep has {count:,} rows, too many to draw a curve of.")
    rows = {name: await known.of(name) for name in names}
    try:
        curve = await asyncio.to_thread(_drawn, run, asked, rows)
    except InvalidInput as error:
        return _said(asked, f"The sweep makes no curve: {error}")
    drawn = chain.from_iterable(rows.values())
    judges = run.config.get("judges") or ()
    notes = [RunNote(SWEEP, as_proven(_sentence(asked, curve), drawn, judges))]
    option = asked["option"]
    if curve["is_flat"]:
        text = (
            f"All {len(values)} points of the sweep gave the same on every example. Does the "
            f'system take an option "{option}"?'
        )
        notes.append(RunNote(SWEEP_FLAT, text))
    for point in filter(None, (*curve["points"], curve["whole"])):
        reported = summary.get(point["system"], {}).get("mean_reader_prompt_tokens")
        point["reader_prompt_tokens"] = reported
    return Swept({"sweep": {**asked, "curve": curve}}, tuple(notes))


def _said(asked: dict[str, Any], text: str) -> Swept:
    return Swept({"sweep": {**asked, "curve": None, "why": text}}, (RunNote(SWEEP, text),))


def _drawn(run: Run, asked: dict[str, Any], rows: dict[str, list[EvalRow]]) -> dict[str, Any]:
    # Here, since it takes numpy, which a daemon without finished runs need not load.
    from cbench_server.comparison.sweeps import Arm, sweep_of

    values = dict(asked["points"])
    whole = asked["whole"]
    cuts = [control for control in controls_of(run) if control.leader in values]
    cuts.sort(key=lambda control: values[control.leader])
    return sweep_of(
        [Arm(name, rows[name], value) for name, value in values.items()],
        Arm(whole, rows[whole]) if whole else None,
        [
            Arm(control.name, rows[control.name], values[control.leader], control.cut)
            for control in cuts
        ],
        tokens_of=_prompt_tokens if asked["is_reported"] else _context_tokens,
        score_field=run.spec.score_field or None,
        scores=score_infos(run.config.get("datasets", ())),
    ).describe()


def _context_tokens(row: EvalRow) -> int | None:
    return row.context_tokens_out


def _prompt_tokens(row: EvalRow) -> int | None:
    tokens = (row.usage or {}).get("prompt_tokens")
    return tokens if isinstance(tokens, int) else None


def _sentence(asked: dict[str, Any], curve: dict[str, Any]) -> str:
    """Say how much of the context is enough, or that it is not reached."""
    from cbench_server.comparison.sweeps import ENOUGH

    needed, points = curve["needed"], curve["points"]
    goal = f"{ENOUGH:.0%} of {asked['whole'] or 'the whole context'}'s {curve['score']}"
    tokens = "prompt tokens, as reported" if asked["is_reported"] else "context's tokens"
    if needed["state"] == "unknown":
        return f"What share of the tokens {goal} needs is unknown: {curve['why_unknown']}."
    by_share = sorted(points, key=lambda point: point["share"])
    smallest, largest = by_share[0], by_share[-1]
    ends = _ends(needed, smallest)
    if needed["state"] == "not reached":
        return (
            f"{goal} is not reached{ends}: {_place(largest)} of the {tokens}, has "
            f"{numbers.share(largest['of_whole'])} of it"
            f"{_interval(largest['of_whole_low'], largest['of_whole_high'])}."
        )
    if needed["state"] == "smallest":
        return f"{goal} is kept from the smallest on{ends}: {_place(smallest)} of the {tokens}."
    return f"{goal} needs {numbers.share(needed['share'])} of the {tokens}{ends}."


def _ends(needed: dict[str, Any], smallest: dict[str, Any]) -> str:
    """Write the interval, whose ends need not be shares; nothing where it adds nothing."""
    states = [needed["low_state"], needed["high_state"]]
    if "unknown" in states or set(states) == {needed["state"]} - {"interpolated"}:
        return ""
    words = {
        "smallest": f"{numbers.share(smallest['share'])} or less",
        "not reached": "not reached",
    }
    low, high = (
        words.get(state) or numbers.share(value)
        for state, value in zip(states, (needed["low"], needed["high"]), strict=True)
    )
    return f" (95% CI {low} to {high})"


def _place(point: dict[str, Any]) -> str:
    name = point["system"].rpartition(":")[2]
    return f"{name}, with {numbers.share(point['share'])}"


def _interval(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return ""
    return f" (95% CI {numbers.share(low)} to {numbers.share(high)})"
