"""Asked again: a few rows of a system, called a second time to see whether it is deterministic.

They are asked when all rows of the system are made, one at a time, so that no
time of a row contains them. They are no rows. A memory is not asked
again, since a question may change it: repeats put its conversations in anew.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from cbench_server.errors import CallFailed, InvalidSpec
from cbench_server.limits import LARGE_ANSWER
from cbench_server.runs.plan import Plan
from cbench_server.runs.rows import Item
from cbench_server.runs.turns import CHOSEN_AMONG
from cbench_server.spec import RunSpec
from cbench_server.systems.caller import (
    BUILTIN,
    CONTROL,
    PREDICTIONS,
    Answer,
    Caller,
    call_one,
)

ASKED_AGAIN = 5
FEWEST_ROWS = 10
"""A run of fewer is not asked again: it would be nearly as many calls as rows."""
_SECONDS = 10.0
# What answers by looking up, or is ours.
_KNOWN = frozenset({BUILTIN, PREDICTIONS, CONTROL})


def check_asked_again(spec: RunSpec) -> None:
    """Refuse what cannot be meant."""
    if spec.kind == "memory" and spec.asked_again:
        raise InvalidSpec(
            "asked_again means nothing in a memory run; leave it out.", field="spec.asked_again"
        )
    if (spec.asked_again or 0) < 0:
        raise InvalidSpec(
            f"asked_again must be at least 0, not {spec.asked_again}.", field="spec.asked_again"
        )


def rows_asked_again(spec: RunSpec) -> int:
    """Return how many rows a run asks again: none where repeats tell.

    Nor where calls are paid for from a budget, which is not spent on them unasked.
    """
    if spec.repeats > 1:
        return 0
    usual = ASKED_AGAIN if spec.budget_usd is None else 0
    return usual if spec.asked_again is None else spec.asked_again


@dataclass(order=True)
class _Kept:
    rank: bytes
    item: Item = field(compare=False)
    processed: dict[str, Any] = field(compare=False)


class AskedAgain:
    """Keeps a few first answers of a system, and compares them with second ones."""

    def __init__(self, plan: Plan, caller: Caller, clock: Callable[[], float]) -> None:
        self._plan = plan
        self._caller = caller
        self._clock = clock
        self._kept: list[_Kept] = []
        self._answers = 0
        self._most = 0 if caller.description.location in _KNOWN else plan.asked_again

    def note(self, answers: list[Answer]) -> None:
        """Count answers, and keep those of the few rows that the seed chooses."""
        self._answers += len(answers)
        if not self._most:
            return
        for answer in answers:
            item: Item = answer.call
            is_chosen = item.spooled.ordinal < CHOSEN_AMONG and item.repeat == 0
            # Large answers would be held until the end.
            if is_chosen and answer.own_size < LARGE_ANSWER:
                self._keep(item, answer)

    def _keep(self, item: Item, answer: Answer) -> None:
        key = f"{self._plan.seed}:{item.spooled.ordinal}"
        rank = blake2b(key.encode(), digest_size=12).digest()
        if len(self._kept) == self._most:
            if rank > self._kept[-1].rank:
                return
            self._kept.pop()
        self._kept.append(_Kept(rank, item, dict(answer.processed)))
        self._kept.sort()

    async def ask(self) -> tuple[int, int]:
        """Ask again; return how many rows were answered, and how many otherwise than before."""
        asked = differed = 0
        until = self._clock() + _SECONDS
        for kept in self._kept if self._answers >= FEWEST_ROWS else ():
            if self._clock() >= until:
                break
            first = kept.item
            # A name of its own: a system may know a call it has answered.
            call_id = f"{first.call_id}-again"
            item = Item(call_id, first.work, first.spooled, 0, self._clock(), first.size)
            money, system = self._plan.money, self._caller.description.name
            item.account = money.asked_again if money is not None else None
            try:
                answer = await call_one(self._caller, item, self._plan.row_timeout)
            except CallFailed:
                if money is not None:
                    money.charge_failure(item, system)
                break
            if money is not None:
                money.charge(item, answer, system)
            asked += 1
            differed += answer.processed != kept.processed
        return asked, differed
