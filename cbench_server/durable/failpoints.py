"""Failpoints: places between two durable steps at which a test can have the process killed.

CBENCH_FAILPOINT=NAME or NAME:3 kills it, as a power cut would, when it comes
to the place for the first or third time, any:3 at the third place of whatever name; its last
words in the log name the place. Unset, a place is an empty call, made once a batch or a file, and
never for a row beside what that costs.
"""

import logging
import os
import signal
from collections.abc import Callable

log = logging.getLogger(__name__)

VARIABLE = "CBENCH_FAILPOINT"

# What is written beside its place and put there; see files.put_in_place.
FILES = (
    "upload",
    "archive",
    "tokens",
    "output",
    "judge-check",
    "cached-row",
    "launched",
    "asked",
)

NAMES = (
    *(f"{kind}.{step}" for kind in FILES for step in ("written", "placed")),
    "migrate.before",
    "migrate.after",
    "accept.claimed",
    "accept.stored",
    "call.before",
    "call.after",
    "commit.before",
    "commit.after",
    "stream.before",
    "recover.claimed",
    "resume.claimed",
    "cancel.claimed",
    "intent.asked",
    "intent.performed",
    "intent.answered",
    "intent.forgotten",
    "lease.entered",
    "lease.claimed",
    "lease.renewed",
    "lease.released",
    "leave.released",
    "leave.left",
    "rescore.examples",
    "summary.before",
    "finish.before",
    "finish.after",
    "delete.marked",
    "delete.piece",
    "import.begun",
    "import.batch",
    "import.finished",
    "archive.writing",
    "archive.verified",
    "prune.upload",
    "prune.leftover",
)
# In place of a name: all of them.
ANY = "any"


def _nothing(name: str) -> None:
    pass


def last_words(name: str) -> str:
    """Return what a process says last at a place."""
    return f"killed at failpoint {name}"


def armed(setting: str) -> Callable[[str], None]:
    """Return what to call at every place, for a setting of the variable."""
    if not setting:
        return _nothing
    chosen, _, count = setting.partition(":")
    if chosen not in (*NAMES, ANY) or not (count or "1").isdecimal():
        raise ValueError(f"{VARIABLE}={setting} is not a valid failpoint. There are: {NAMES}")
    left = int(count or 1)

    def hit(name: str) -> None:
        nonlocal left
        if chosen in (name, ANY):
            left -= 1
            if left == 0:
                # The log is written at once, where stderr may be read by a thread that dies too.
                log.critical(last_words(name))
                os.kill(os.getpid(), signal.SIGKILL)

    return hit


hit: Callable[[str], None] = _nothing


def arm() -> None:
    """Obey the variable from now on."""
    global hit
    hit = armed(os.environ.get(VARIABLE, ""))
