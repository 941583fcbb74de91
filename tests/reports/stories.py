"""Runs made up for the page: with everything it can show."""

import random
from collections.abc import Callable, Iterator
from typing import Any

from cbench_server.metrics import METRICS, summarize
from cbench_server.reports.report import FullRow, Report, compared_sides
from cbench_server.results import EvalRow, Failure
from cbench_server.spec import DatasetRef, Run, RunSpec, RunState, SystemProgress

SYSTEMS = ("keyword-windows", "extractive", "identity")
_PLACES = ("harbour", "lantern", "copper", "ledger", "orchard", "signal", "bridge", "tunnel")

Example = dict[str, Any]
Answer = Callable[[EvalRow, Example], Example]


def halved(row: EvalRow, original: Example) -> Example:
    """Answer from half of the context; identity leaves it as it is."""
    words = original["context"].split(" ")
    if row.system != "identity":
        words = [*words[: len(words) // 2], "(shortened)"]
    response = f"It was kept in the {_PLACES[row.ordinal % len(_PLACES)]}."
    return {**_asked(original), "context": " ".join(words), "response": response}


def story(
    examples: int = 40,
    systems: tuple[str, ...] = SYSTEMS,
    *,
    context: Callable[[int], str] | None = None,
    answer: Answer = halved,
    change: Callable[[EvalRow], None] = lambda row: None,
) -> Report:
    """Tell of systems that answer from a shortened context; some rows fail, all are judged."""
    rows = {
        system: [_row(system, number, at, examples) for at in range(examples)]
        for number, system in enumerate(systems)
    }
    everything = [row for listed in rows.values() for row in listed]
    for row in everything:
        change(row)
    originals = [_original(at, (context or _context)(at)) for at in range(examples)]

    def full_rows(system: str) -> Iterator[FullRow]:
        for row in rows[system]:
            original = originals[row.ordinal]
            row.processed = None if row.failure else answer(row, original)
            yield row, original

    run = _run(rows)
    return Report(run, lambda: everything, full_rows, lambda: compared_sides(rows, [run]))


def _run(rows: dict[str, list[EvalRow]]) -> Run:
    everything = [row for listed in rows.values() for row in listed]
    labels = list(dict.fromkeys(row.dataset for row in everything))
    return Run(
        run_id="20260131-120000-000abcdef",
        spec=RunSpec(systems=(), datasets=tuple(map(DatasetRef, labels))),
        state=RunState.SUCCEEDED,
        create_time=1769860800.0,
        end_time=1769860863.5,
        total_rows=len(everything),
        systems=tuple(rows),
        progress={
            system: SystemProgress(len(listed), sum(row.failure is not None for row in listed))
            for system, listed in rows.items()
        },
        summary=summarize(everything, [metric() for metric in METRICS.values()], rows),
        timing=dict.fromkeys(rows, 3.5),
        config={
            "datasets": [
                {
                    "label": label,
                    "primary_score": "f1",
                    "is_official_metric": True,
                    "withheld_fields": ["answer", "answers"],
                }
                for label in labels
            ]
        },
    )


def _context(number: int) -> str:
    draw = random.Random(number)
    return " ".join(
        f"The {draw.choice(_PLACES)} of day {day} was kept in the {draw.choice(_PLACES)}."
        for day in range(30)
    )


def _original(number: int, context: str) -> Example:
    answer = _PLACES[(number + 3) % len(_PLACES)]
    return {
        "id": f"example-{number:05d}",
        "question": f"Where was box number {number} kept?",
        "context": context,
        "answer": answer,
        "answers": [answer, f"the {answer}"],
        "difficulty": "hard",
    }


def _asked(original: Example) -> Example:
    return {name: original[name] for name in ("id", "question")}


def _row(system: str, number: int, at: int, examples: int) -> EvalRow:
    draw = random.Random(f"{number} {at}")
    f1 = min(1.0, max(0.0, draw.gauss(0.75 - 0.15 * number, 0.3)))
    row = EvalRow(
        system=system,
        example_id=f"example-{at:05d}",
        scores={"f1": f1, "contains": float(f1 > 0.5), "rating": 1 + 4 * f1},
        input_tokens=420,
        output_tokens=120 + 100 * number,
        latency=draw.lognormvariate(number - 3, 0.8),
        dataset="mini-qa" if at < examples / 2 else "long-notes",
        index=at % max(1, (examples + 1) // 2),
        ordinal=at,
        primary_score="f1",
        context_tokens_in=400,
        context_tokens_out=100 + 100 * number + at % 20,
        queue_time=draw.lognormvariate(-6, 1),
        scoring_time=draw.lognormvariate(-8, 1),
        details={"llm-judge": {"rating": 4, "explanation": f"On {at}: it names the place."}},
    )
    if number == 1 and at % 13 == 5:
        _fail(row, at)
    return row


def _fail(row: EvalRow, at: int) -> None:
    reason = "DEADLINE_EXCEEDED" if at % 2 else "UNAVAILABLE"
    row.failure = Failure("system", reason, f"no answer to example {at} within 60s.", 3)
    row.scores, row.details, row.primary_score = {}, {}, ""
    row.context_tokens_in = row.context_tokens_out = None
