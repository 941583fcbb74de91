"""Exceptions that cross from one room of the house to another.

CbenchError
├── NotFound             no such thing
│   ├── UnknownName      no such dataset, evaluator, metric or system
│   └── UnknownRun       no such run
├── InvalidInput         the request cannot be carried out as it stands
│   ├── InvalidSpec      a run's spec
│   ├── UnknownField     a field or a value of a newer contract
│   ├── BadDataset       an example or file
│   │   ├── NothingMatches   it has none of what was asked for
│   │   └── DatasetAway      who has it cannot be reached; it may be back
│   └── Unencodable      a value that cannot be stored or sent
├── AlreadyExists        a name or request id is taken
├── WrongState           the thing exists, but this cannot be done to it now
│   └── LostClaim        another process owns the run by now
├── SystemUnreachable    a system cannot be reached when a run starts
├── Unauthenticated      a call carries no token that is known
├── Forbidden            it does, and the token is not for this
├── LimitReached         a stated limit; try later
├── ShuttingDown         the daemon is draining
├── StoreError           the store cannot be used
│   ├── StoreAway        busy, full or read-only; it may be back
│   ├── StoreCorrupt     what is read is not what was written
│   │   └── DamagedRun   of one run; the others are sound
│   ├── StoreFull        no space is left, or a quota is used up
│   └── StoreTooNew      written by a newer version
├── RunFailed            the run as a whole cannot go on; carries its Failure
├── EvaluatorBroken      an evaluator's own machinery failed on one pair
│   └── ComponentAway    nobody is there to ask; it may be back
│       └── ExamplesAway     or to read from, in the middle of a run
└── CallFailed           one example got no answer; carries the row's Failure
    └── ChatFailed       a model gave no answer (models/chat.py)
"""

import difflib
import json
import re
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cbench_server.results import Failure


_MOST_LISTED = 30
"""More names than these are not put into a sentence."""


class CbenchError(Exception):
    """What went wrong, in a sentence for a person; `reason` is for programs."""

    reason = "INTERNAL"
    field = ""
    """The path of the request's field that is to blame; empty where that is not known."""
    flags = ""
    """The way out in flags of the command line, as sentences; may be empty."""


@contextmanager
def blaming(path: str) -> Iterator[None]:
    """Say of errors from within that this field is to blame, or what they blame below it."""
    try:
        yield
    except CbenchError as error:
        error.field = f"{path}.{error.field}" if error.field else path
        raise


def entry_of(name: str, key: str) -> str:
    """Return the path of an entry of a map: `options["ratio"]`."""
    return f"{name}[{json.dumps(key, ensure_ascii=False)}]"


class NotFound(CbenchError):
    """There is no such thing."""

    reason = "NOT_FOUND"


class UnknownName(NotFound):
    """No component of that kind has that name."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.reason = f"UNKNOWN_{kind.upper().replace(' ', '_')}"
        names = sorted(known)
        near = difflib.get_close_matches(name, names, n=1)
        listing = {"dataset", "evaluator", "metric", "system"}
        how = f" List them with: cbench {kind}s" if kind in listing else ""
        if near:
            hint = f'; did you mean "{near[0]}"?'
        else:
            is_long = how and len(names) > _MOST_LISTED
            hint = "." if is_long else f". Known: {', '.join(names) or 'none'}."
        super().__init__(f'no {kind} "{name}"{hint}{how}')


class UnknownRun(NotFound):
    """No run has that id."""

    reason = "UNKNOWN_RUN"

    def __init__(self, run_id: str) -> None:
        super().__init__(f'no run "{run_id}". List them with: cbench runs')


class InvalidInput(CbenchError):
    """The request cannot be carried out as it stands."""

    reason = "INVALID_ARGUMENT"

    def __init__(self, message: object = "", *, field: str = "", flags: str = "") -> None:
        self.field = field
        self.flags = flags
        super().__init__(message)


class InvalidSpec(InvalidInput):
    """A run's spec asks for something that cannot be run."""

    reason = "INVALID_SPEC"


class UnknownField(InvalidInput):
    """The request has a field, or a value of an enum, that this daemon would ignore."""

    reason = "UNKNOWN_FIELD"


class BadDataset(InvalidInput):
    """An example or a dataset file cannot be used."""

    reason = "BAD_DATASET"


class NothingMatches(BadDataset):
    """A dataset has none of what was asked for, and never will."""

    reason = "NOTHING_MATCHES"


class DatasetAway(BadDataset):
    """Who has a dataset cannot be reached; the same request may succeed later."""

    reason = "DATASET_AWAY"

    def __init__(self, message: object, *, was_there: bool = False) -> None:
        self.was_there = was_there
        """Whether no run is accepted that could not reach it."""
        super().__init__(message)


class Unencodable(InvalidInput):
    """A value cannot be stored or sent without loss."""

    reason = "UNENCODABLE_VALUE"


class AlreadyExists(CbenchError):
    """A name or request id is taken."""

    reason = "ALREADY_EXISTS"


class WrongState(CbenchError):
    """The thing exists, but this cannot be done to it now."""

    reason = "WRONG_STATE"


class LostClaim(WrongState):
    """A process that no longer owns a run tried to change it."""

    reason = "LOST_CLAIM"


class SystemUnreachable(CbenchError):
    """A system could not be reached, or does not speak the contract."""

    reason = "SYSTEM_UNREACHABLE"


class Unauthenticated(CbenchError):
    """A call carries no token, and no certificate, that the daemon knows."""

    reason = "UNAUTHENTICATED"


class Forbidden(CbenchError):
    """Who calls is known, and may not do this."""

    reason = "PERMISSION_DENIED"


class LimitReached(CbenchError):
    """A stated limit was reached; the same request may succeed later."""

    reason = "LIMIT_REACHED"


class ShuttingDown(CbenchError):
    """The daemon takes no more work."""

    reason = "SHUTTING_DOWN"


class StoreError(CbenchError):
    """The store cannot be read or written."""

    reason = "STORE_ERROR"


class StoreAway(StoreError):
    """The store is busy, full or read-only; the same request may succeed later."""

    reason = "STORE_AWAY"


class StoreCorrupt(StoreError):
    """What was read is not what was written."""

    reason = "STORE_CORRUPT"


def printable(run_id: object) -> str:
    """Return how a run is called whose name may be damaged."""
    text = run_id.decode(errors="replace") if isinstance(run_id, bytes) else str(run_id)
    return text.encode(errors="backslashreplace").decode()


class DamagedRun(StoreCorrupt):
    """Something of one run cannot be read as it was written; the other runs are sound."""

    def __init__(self, run_id: str, what: str, why: object = "") -> None:
        self.run_id = run_id
        self.why = why
        self.what = f"{what} ({why})" if why else what
        """What is damaged, without what to do."""
        super().__init__(
            f"{self.what}. Save what can be read: cbench runs salvage {printable(run_id)}; then "
            "delete the run, or restore a copy of the store."
        )


class StoreFull(StoreAway):
    """No space is left for what was to be written, and nothing that is stored is lost."""

    reason = "STORE_FULL"


class StoreTooNew(StoreError):
    """The store was written by a newer version."""

    reason = "STORE_TOO_NEW"


class EvaluatorBroken(CbenchError):
    """An evaluator could not do its work, through no fault of the judged output."""

    reason = "EVALUATOR_BROKEN"


class ComponentAway(EvaluatorBroken):
    """An evaluator, judge or reader is not there; it may be back."""

    reason = "UNAVAILABLE"
    way_out = "Start it, then resume the run."
    """What to do when a run has waited for it in vain."""

    def __init__(self, message: str, *, was_asked: bool = True) -> None:
        self.was_asked = was_asked
        """Whether the question may have reached it, and be what ended it."""
        super().__init__(message)


class ExamplesAway(ComponentAway):
    """Who has the examples of a run is not there; it may be back."""

    way_out = "When it can be read again, resume the run."


class RunFailed(CbenchError):
    """The run as a whole cannot go on; what it has is kept."""

    def __init__(self, failure: "Failure", *, who: str = "") -> None:
        self.reason = failure.reason
        self.failure = failure
        self.who = who
        """What of the run it is about, such as `system "mine"`; empty if nothing in particular."""
        super().__init__(failure.message)


class CallFailed(CbenchError):
    """One example got no answer."""

    def __init__(
        self, failure: "Failure", retry_delay: float | None = None, *, has_died: bool = False
    ) -> None:
        self.reason = failure.reason
        self.failure = failure
        self.retry_delay = retry_delay
        """The least time to wait before a retry, in seconds, where the other side asked for one."""
        self.has_died = has_died
        """Whether the replica that had the call died with it, while others may be there."""
        super().__init__(failure.message)


_LONGEST_SAID = 1_000


def said(error: BaseException) -> str:
    """Return what an error says; one that is not ours also has its type said.

    Its words may be endless or no text at all, and asking for them may raise something else.
    """
    if isinstance(error, CbenchError):
        return storable(str(error))
    try:
        words = f": {error}"
    except Exception as another:
        words = f", whose words cannot be had ({type(another).__name__})"
    end = "…" if len(words) > _LONGEST_SAID else ""
    return storable(f"{type(error).__name__}{words[:_LONGEST_SAID]}{end}")


def storable(text: str) -> str:
    """Return a text that can be stored and sent; what is no character in it is a question mark."""
    return text if text.isascii() else text.encode(errors="replace").decode()


EXITS = (SystemExit, KeyboardInterrupt)
"""With these, code that is not ours would end the process that it runs in."""


@contextmanager
def contained(who: str, kind: type[CbenchError] = InvalidInput) -> Iterator[None]:
    """Turn an attempt of others' code to exit into an error that says who made it."""
    try:
        yield
    except EXITS as error:
        if isinstance(error, KeyboardInterrupt) and _may_be_a_persons():
            raise
        raise kind(f"{who} tried to exit") from error


def _may_be_a_persons() -> bool:
    """Whether Ctrl-C raises KeyboardInterrupt here; in a daemon it does not."""
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler


_LONGEST_PART = 400
_LONGEST = 2_000
_END = 60
# What stands between quotes, or a word.
_PART = re.compile(r'"[^"]*"|\S+')


def shortened(message: str) -> str:
    """Cut the middle out of every quoted text or word that is longer than one can read."""
    if len(message) <= _LONGEST_PART:
        return message
    return _cut(_PART.sub(lambda part: _cut(part[0], _LONGEST_PART), message), _LONGEST)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - _END]}…{text[-_END:]}"
