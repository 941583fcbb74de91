"""The account of a row: what models charged for it, request by request.

A request is paid for in two steps. What it may cost at most is set aside before
it is sent; when it has ended, what it did cost takes that place. Where nobody
can tell what it did cost, the row says so, and the budget counts the most.
"""

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from decimal import Decimal
from typing import Any

from cbench_server.errors import CallFailed
from cbench_server.models.ledger import Envelope, Ledger
from cbench_server.models.messages import Message
from cbench_server.models.price import ZERO, cost_of, most_of, tokens_used
from cbench_server.results import COST_UNKNOWN, EvalRow, Failure
from cbench_server.spec import BUDGET_SPENT, PriceRef

OWN_COSTS = ("system", "reader")
"""Who else than an evaluator charges for a row."""

ACCOUNT: "ContextVar[Account | None]" = ContextVar("account", default=None)
"""Who pays for what is asked here; judges look for it, since evaluators know of no rows."""


class Account:
    """What one row, or the tests of a judge, cost so far. Belongs to one event loop.

    Args:
        ledger: The budget of the run; None if it has none.
        envelope: What is set aside in it for the row's example.
    """

    def __init__(self, ledger: Ledger | None = None, envelope: Envelope | None = None) -> None:
        self._ledger = ledger
        self._envelope = envelope
        self._costs: dict[str, Decimal] = {}
        self._unknown: set[str] = set()
        self.is_refused = False
        """Whether a request was not made for want of money."""

    @property
    def costs(self) -> dict[str, float]:
        """US dollars by who charged them, as far as they are known."""
        return {who: float(cost) for who, cost in self._costs.items()}

    @property
    def has_unknown(self) -> bool:
        """Whether something was, or may have been, charged that nobody told of."""
        return bool(self._unknown)

    async def open(
        self,
        who: str,
        price: PriceRef | None,
        messages: Sequence[Message],
        answer_tokens: int,
    ) -> "Payment":
        """Set aside what a request may cost; raise CallFailed if the budget does not allow it."""
        if price is None or self._ledger is None:
            return Payment(self, who, price)
        tokens = await self._ledger.count(messages)
        most = most_of(price, tokens, answer_tokens, self._ledger.margin)
        if not await self._ledger.hold(most, self._envelope):
            self.is_refused = True
            raise CallFailed(Failure("daemon", BUDGET_SPENT, self._ledger.refusal(most)))
        return Payment(self, who, price, self._ledger, self._envelope, most, tokens)

    def enter(self, who: str, cost: Decimal | None) -> None:
        """Take note of what a request cost; None if nobody knows."""
        if cost is None:
            self._unknown.add(who)
        else:
            self._costs[who] = self._costs.get(who, ZERO) + cost

    def settle(self, row: EvalRow) -> None:
        """Write down on a row what it cost."""
        row.cost_usd = {**row.cost_usd, **self.costs}
        if self.has_unknown and COST_UNKNOWN not in row.marks:
            row.marks = (*row.marks, COST_UNKNOWN)


class Payment:
    """One request, from what it may cost to what it did cost; ended exactly once."""

    def __init__(
        self,
        account: Account,
        who: str,
        price: PriceRef | None,
        ledger: Ledger | None = None,
        envelope: Envelope | None = None,
        most: Decimal = ZERO,
        tokens: int = 0,
    ) -> None:
        self._account = account
        self._who = who
        self._price = price
        self._ledger = ledger
        self._envelope = envelope
        self._most = most
        self._tokens = tokens
        self._is_open = True

    def answered(self, usage: Mapping[str, Any] | None) -> None:
        """Count what the model says it used; without that, nobody knows."""
        if self._price is None:
            return
        cost = cost_of(self._price, usage)
        used = tokens_used(usage)
        if self._ledger is not None and used is not None:
            self._ledger.note_prompt(self._tokens, used[0])
        self._end(cost, self._most if cost is None else cost)
        self._account.enter(self._who, cost)

    def refused(self) -> None:
        """Count nothing: the server said no, and charges nothing for that."""
        self._end(ZERO, ZERO)

    def lost(self) -> None:
        """Count the most, if it has not ended yet: the server may have done its work."""
        if self._is_open and self._price is not None:
            self._end(None, self._most)
            self._account.enter(self._who, None)

    def _end(self, cost: Decimal | None, charged: Decimal) -> None:
        if self._is_open and self._ledger is not None:
            self._ledger.settle(self._most, charged, self._envelope, is_known=cost is not None)
        self._is_open = False
