"""Intents: what is asked of whoever owns a run, written into the store and answered there.

No process calls another. Who is asked about a run that another owns writes down what is wanted;
the owner finds it, does it as if it had been asked itself, and writes its answer. A run that
nobody owns is dealt with by whichever daemon finds it first.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from cbench_server.errors import WrongState

_ANSWERED_WITHIN_S = 10.0
_ASK_AGAIN_S = 0.05


class OwnedElsewhere(WrongState):
    """Another process owns the run, so the intent is for that one."""


@dataclass(frozen=True)
class Intent:
    """One request: `cancel`, `resume`, `delete` or `explain`."""

    id: int
    run_id: str
    kind: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """What came of an intent; a refusal has words, which are the owner's."""

    refusal: str = ""


async def ask(intents: "Intents", run_id: str, kind: str, **arguments: Any) -> bool:
    """Ask the owner of a run and wait for its answer; False if none came in some seconds.

    It is done all the same then, once the owner, or whoever comes after it, finds it. Raises
    WrongState in the owner's words.
    """
    number = await intents.ask(run_id, kind, arguments)
    ends_at = time.monotonic() + _ANSWERED_WITHIN_S
    while (answer := await intents.answer_to(number)) is None:
        if time.monotonic() > ends_at:
            return False
        await asyncio.sleep(_ASK_AGAIN_S)
    if answer.refusal:
        raise WrongState(answer.refusal)
    return True


async def refer(intents: "Intents", run_id: str, kind: str, **arguments: Any) -> bool:
    """Leave an intent to the owner of its run; in place of `ask`, for who was asked so itself."""
    raise OwnedElsewhere(f'run "{run_id}" belongs to another process, which was asked.')


PassOn = Callable[..., Awaitable[bool]]
"""What is done with a request about a run that another process owns: `ask` or `refer`."""


class Intents(Protocol):
    """The intents of a store."""

    async def ask(self, run_id: str, kind: str, arguments: Mapping[str, Any]) -> int:
        """Write an intent down and return its id; whoever may deal with it is told."""
        ...

    async def unanswered(self) -> Sequence[Intent]:
        """Return what nobody has dealt with yet, oldest first."""
        ...

    async def is_open(self, intent: Intent) -> bool:
        """Tell whether one is unanswered still."""
        ...

    async def answer(self, intent: Intent, answer: Answer) -> None:
        """Say what came of one; it is unanswered no more."""
        ...

    async def answer_to(self, number: int) -> Answer | None:
        """Return the answer to an intent and forget both; None while there is none."""
        ...

    async def wait(self, timeout: float) -> None:
        """Wait until somebody tells that there may be something to do, or for so long."""
        ...

    def tell(self) -> None:
        """Tell those who wait, here and elsewhere, that there may be something to do."""
        ...
