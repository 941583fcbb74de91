"""Every fault the suite must find, each made by replacing one piece of a working program.

Imported by the faulty program only, so what is replaced here is broken in that
process and nowhere else.
"""

from faults import (
    announcements,
    attaching,
    calls_at_once,
    evaluation,
    failures,
    memories,
    serving,
    streams,
    values,
)
from faults.registry import FAULTS

MODULES = (
    announcements,
    attaching,
    calls_at_once,
    evaluation,
    failures,
    memories,
    serving,
    streams,
    values,
)

__all__ = ["FAULTS", "MODULES"]
