"""The life of a run as data: its states, what leads from one to another, what a request does.

The owner of a run (ownership.py) takes it from state to state, and a store
accepts no change of state that is not among the transitions. Requests are
answered by state and owner. docs/architecture.md shows both tables.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from cbench_server.errors import WrongState
from cbench_server.spec import RunState

OPEN = tuple(state for state in RunState if not state.is_final)
FINAL = tuple(state for state in RunState if state.is_final)


@dataclass(frozen=True)
class Transition:
    """One step in the life of a run, stored in one commit with its event."""

    name: str
    before: tuple[RunState, ...]
    """Empty where there is no run yet."""
    after: RunState | None
    """None where there is no run any more."""
    event: str
    """What watchers are told, from the same commit."""
    meaning: str


TRANSITIONS = (
    Transition("start", (), RunState.QUEUED, "accepted", "A spec is accepted; so is a rescoring."),
    Transition(
        "run",
        (RunState.QUEUED, RunState.WAITING),
        RunState.RUNNING,
        "state_change",
        "Its turn has come, or what it waited for is back.",
    ),
    Transition(
        "wait",
        OPEN,
        RunState.WAITING,
        "state_change",
        "Something it needs is away; what was in flight stays undone.",
    ),
    Transition(
        "hand back",
        (RunState.RUNNING, RunState.WAITING),
        RunState.QUEUED,
        "state_change",
        "The daemon ends in good order; the next one takes the run up.",
    ),
    Transition(
        "finish",
        (RunState.RUNNING, RunState.WAITING),
        RunState.SUCCEEDED,
        "finished",
        "All rows are made.",
    ),
    Transition("fail", OPEN, RunState.FAILED, "finished", "It cannot go on, or patience is spent."),
    Transition("cancel", OPEN, RunState.CANCELLED, "finished", "Someone asked for it."),
    Transition(
        "recover",
        OPEN,
        RunState.QUEUED,
        "state_change",
        "Its process died; a daemon that starts takes it up by itself.",
    ),
    Transition(
        "resume",
        (*OPEN, RunState.FAILED, RunState.CANCELLED),
        RunState.QUEUED,
        "state_change",
        "Someone asked for it.",
    ),
    Transition(
        "delete", tuple(RunState), None, "", "It is hidden at once, and its rows go piece by piece."
    ),
)


class Owner(StrEnum):
    """Who owns a run, as a process sees it that is asked about one."""

    HERE = "this process"
    ELSEWHERE = "another process"
    NOBODY = "nobody"


class Reply(StrEnum):
    """What becomes of a request."""

    DONE = "done"
    ASKED = "asked of its owner"
    UNCHANGED = "nothing changes"
    REFUSED = "refused"


_ALL_OWNERS = tuple(Owner)
_TAKEN = (Owner.HERE, Owner.ELSEWHERE)

# The first line that holds decides.
REQUESTS: dict[str, tuple[tuple[Iterable[RunState], Iterable[Owner], Reply], ...]] = {
    "cancel": (
        (FINAL, _ALL_OWNERS, Reply.UNCHANGED),
        (OPEN, (Owner.HERE, Owner.NOBODY), Reply.DONE),
        (OPEN, (Owner.ELSEWHERE,), Reply.ASKED),
    ),
    "resume": (
        (OPEN, _TAKEN, Reply.UNCHANGED),
        ((RunState.SUCCEEDED,), _ALL_OWNERS, Reply.REFUSED),
        (FINAL, (Owner.ELSEWHERE,), Reply.ASKED),
        (tuple(RunState), (Owner.HERE, Owner.NOBODY), Reply.DONE),
    ),
    "recover": (
        (OPEN, (Owner.NOBODY,), Reply.DONE),
        (tuple(RunState), _ALL_OWNERS, Reply.UNCHANGED),
    ),
    "delete": (
        (OPEN, _TAKEN, Reply.REFUSED),
        (FINAL, (Owner.ELSEWHERE,), Reply.ASKED),
        (tuple(RunState), (Owner.HERE, Owner.NOBODY), Reply.DONE),
    ),
    "rescore": (
        (FINAL, _ALL_OWNERS, Reply.DONE),
        (OPEN, _ALL_OWNERS, Reply.REFUSED),
    ),
}
"""What a request does, by the state of the run and who owns it.

A final run that is owned here is about to be let go; the request waits for that.
"""


def reply_to(request: str, state: RunState, owner: Owner) -> Reply:
    """Say what becomes of a request."""
    return next(
        reply for states, owners, reply in REQUESTS[request] if state in states and owner in owners
    )


def is_transition(before: RunState, after: RunState) -> bool:
    """Tell whether one state may follow another; staying in an open one is no change."""
    if before is after:
        return not before.is_final
    return any(before in each.before and after is each.after for each in TRANSITIONS)


def check_change(run_id: str, before: RunState, after: RunState) -> None:
    """Refuse a change of state that no transition makes."""
    if not is_transition(before, after):
        raise WrongState(f'run "{run_id}" is {before} and cannot become {after}.')


def states_table() -> str:
    """The transitions, for docs/architecture.md."""
    lines = ["| Step | From | To | Event | When |", "|---|---|---|---|---|"]
    for each in TRANSITIONS:
        before = _named(each.before) or "(no run)"
        event = f"`{each.event}`" if each.event else ""
        lines.append(
            f"| {each.name} | {before} | {each.after or '(no run)'} | {event} | {each.meaning} |"
        )
    return "\n".join(lines)


def requests_table() -> str:
    """What requests do, for docs/architecture.md."""
    lines = ["| Request | State of the run | Owned by | Comes to |", "|---|---|---|---|"]
    for request, cases in REQUESTS.items():
        for states, owners, reply in cases:
            lines.append(f"| {request} | {_named(states)} | {_named(owners)} | {reply} |")
    return "\n".join(lines)


def _named(members: Iterable[RunState | Owner]) -> str:
    chosen = tuple(members)
    for group, name in ((tuple(RunState), "any"), (OPEN, "any open one"), (FINAL, "any final one")):
        if chosen == group:
            return name
    return "anyone" if chosen == _ALL_OWNERS else ", ".join(chosen)
