"""The caller of the daemon at the moment: the name of a token, its roles, and from where."""

import logging
from contextvars import ContextVar
from dataclasses import dataclass

from cbench_server.texts.grid import printable

ADMIN = "admin"

audit_log = logging.getLogger("cbench_server.audit")


@dataclass(frozen=True)
class Caller:
    """Who asks."""

    name: str = ""
    """Empty on a daemon that asks for no token, and for what the daemon does by itself."""
    roles: frozenset[str] = frozenset({ADMIN})
    names: frozenset[str] = frozenset()
    """What it may attach, unless it is an admin."""
    peer: str = ""

    @property
    def is_admin(self) -> bool:
        """Whether it may do everything."""
        return ADMIN in self.roles


_NOBODY = Caller()
_calling: ContextVar[Caller] = ContextVar("the caller", default=_NOBODY)


def current_caller() -> Caller:
    """Return who asks for what is being done."""
    return _calling.get()


def set_caller(caller: Caller) -> None:
    """Say who asks, for the rest of this task."""
    _calling.set(caller)


def audit(action: str, sentence: str, **what: object) -> None:
    """Write the line that says who changed something, once it is changed."""
    caller = current_caller()
    who = f'"{caller.name}"' if caller.name else "a caller without a token"
    extra = {"action": action, "caller": caller.name, "peer": caller.peer, **what}
    audit_log.info("%s %s", who, printable(sentence), extra=extra)
