"""Tally of the rows, made in one reading: scores, times, failures."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from cbench_server.metrics.outcomes import is_system_failure, is_timeout
from cbench_server.reports.table import RowFacts
from cbench_server.results import EvalRow

STAGES = ("queue", "system", "under load", "handler under load", "reader", "scoring")
"""Stages of a row in which time is spent, in order; the system's is under load where other calls
were in flight, unless no row of it was timed alone."""


@dataclass(frozen=True)
class FailureKind:
    """Failures that have one cause on one system."""

    system: str
    origin: str
    reason: str


def _numbers() -> defaultdict[tuple[str, str], "array[float]"]:
    return defaultdict(lambda: array("d"))


@dataclass(frozen=True)
class Tally:
    """Counts and values taken from the rows: about 8 bytes per score or time."""

    scores: defaultdict[tuple[str, str], "array[float]"] = field(default_factory=_numbers)
    """Values by system and score, in the order of the rows."""
    times: defaultdict[tuple[str, str], "array[float]"] = field(default_factory=_numbers)
    """Seconds by system and stage, of rows that did not fail, and of calls that timed out."""
    failures: Counter[FailureKind] = field(default_factory=Counter)
    messages: dict[FailureKind, str] = field(default_factory=dict)
    """The first message of each kind."""
    evaluator_failures: Counter[FailureKind] = field(default_factory=Counter)
    primary: dict[str, set[str]] = field(default_factory=dict)
    """The scores that counted, by system."""

    @property
    def facts(self) -> RowFacts:
        """The part that the text table shows."""
        reasons: Counter[str] = Counter()
        for kind, number in self.failures.items():
            reasons[kind.reason] += number
        return RowFacts(reasons, {name: tuple(sorted(used)) for name, used in self.primary.items()})


def tally(rows: Iterable[EvalRow]) -> Tally:
    """Read every row once."""
    found = Tally()
    for row in rows:
        for name, value in row.scores.items():
            found.scores[row.system, name].append(value)
        if row.failure is None:
            _add_times(found, row)
            found.primary.setdefault(row.system, set()).add(row.score_name)
        else:
            kind = FailureKind(row.system, row.failure.origin, row.failure.reason)
            found.failures[kind] += 1
            found.messages.setdefault(kind, row.failure.message)
            if is_system_failure(row) and is_timeout(row):
                # As in the summary: left out, a system that hangs would look quick.
                found.times[row.system, "system" if row.alone else "under load"].append(row.latency)
        for failure in row.evaluator_failures.values():
            kind = FailureKind(row.system, failure.origin, failure.reason)
            found.evaluator_failures[kind] += 1
            found.messages.setdefault(kind, failure.message)
    for used in found.primary.values():
        used.discard("")
    for system in {system for system, stage in found.times if stage == "under load"}:
        if not found.times.get((system, "system")):
            found.times[system, "system"] = found.times.pop((system, "under load"))
    return found


def _add_times(found: Tally, row: EvalRow) -> None:
    times, system = found.times, row.system
    times[system, "queue"].append(row.queue_time)
    if row.call_seconds is not None:
        times[system, "system" if row.alone else "under load"].append(row.call_seconds)
    if row.handler_seconds is not None and not row.alone:
        times[system, "handler under load"].append(row.handler_seconds)
    times[system, "reader"].append(row.reader_time)
    times[system, "scoring"].append(row.scoring_time)
