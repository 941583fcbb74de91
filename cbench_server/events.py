"""Events that a run emits: RunAccepted | StateChanged | RowScored | Progressed | RunFinished.

All but Progressed are stored and carry `seq`, their place in the run, from 1
without gaps; they are published only once they are on disk. Unstored says what
cannot be.
"""

from dataclasses import dataclass, field

from cbench_server.results import EvalRow
from cbench_server.spec import Run, RunState


@dataclass(frozen=True, slots=True)
class RunAccepted:
    """The run exists; always first."""

    run: Run


@dataclass(frozen=True, slots=True)
class StateChanged:
    """The run went from one state to another that is not final."""

    state: RunState
    reason: str = ""


def is_remark(event: StateChanged) -> bool:
    """Whether it only says what became of a replica, of a run that works on as before."""
    return event.state is RunState.RUNNING and bool(event.reason)


# This one and Stored are made for every row; a frozen class would take three times as long.
@dataclass(slots=True)
class RowScored:
    """One example was processed and scored, or failed."""

    row: EvalRow
    packed: bytes | None = field(default=None, repr=False, compare=False)
    """What the system returned as a store keeps it, if it was read there and is unchanged."""


@dataclass(frozen=True, slots=True)
class Progressed:
    """How far the run has come; not stored."""

    run: Run


@dataclass(frozen=True, slots=True)
class Unstored:
    """A change of state that cannot be stored: the run waits for the store itself."""

    event: StateChanged


@dataclass(frozen=True, slots=True)
class RunFinished:
    """The run reached a final state; last, unless it is resumed."""

    run: Run


StoredEvent = RunAccepted | StateChanged | RowScored | RunFinished
Event = StoredEvent | Progressed


@dataclass(slots=True)
class Stored:
    """A stored event with its place in the run and its time."""

    seq: int
    time: float
    event: StoredEvent


Seen = Stored | Progressed | Unstored
"""What watchers get."""
