"""The ledger of a run's budget: what is spent, and what is set aside for requests and examples.

Before a request is sent, what it may cost is in the ledger, and an upper bound of
all that may have been spent so far is stored (`keep`), so that a run which dies
in the middle is taken up with that bound as spent.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from decimal import ROUND_CEILING, Decimal
from typing import Any

from cbench_server.limits import LONG_TEXT
from cbench_server.models.messages import Message
from cbench_server.models.price import PROMPT_MARGIN, ZERO, exact

# How much further than needed the stored bound goes, so that it is not stored with every request.
_STEP = Decimal("0.01")
# Above what a model has made of our tokens so far.
_HEADROOM = Decimal("1.1")
_ENOUGH_TOKENS = 16

Keep = Callable[[dict[str, Any]], Awaitable[None]]
"""Stores what is known of a budget."""


class Envelope:
    """What is set aside for one example, of which its requests take."""

    def __init__(self, left: Decimal, place: int) -> None:
        self.left = left
        self.place = place
        """Of the example in the run."""


class Ledger:
    """Money of one run. Belongs to one event loop.

    Args:
        limit: The most that may be spent.
        spent: What was spent before.
        count: Counts the tokens of a text.
        keep: Stores what `describe` gives, before money is spent beyond what was stored.
    """

    def __init__(
        self, limit: Decimal, spent: Decimal, count: Callable[[str], int], keep: Keep
    ) -> None:
        self.limit = limit
        self.spent = spent
        self.unknown = ZERO
        """The part of `spent` that nobody has confirmed."""
        self.margin = PROMPT_MARGIN
        self.changed: Callable[[], None] = lambda: None
        """Called when something that was set aside is free again."""
        self.give_up_another: Callable[[Envelope], bool] = lambda envelope: False
        """Called to free the money of a later example; False if there is none."""
        self._aside = ZERO
        """In envelopes and for requests."""
        self._held = ZERO
        """For requests in flight."""
        self._in_flight = 0
        self._bound = spent
        self._count = count
        self._keep = keep
        self._keeping = asyncio.Lock()
        self._waiters: list[asyncio.Future[None]] = []

    @property
    def free(self) -> Decimal:
        """What is neither spent nor set aside."""
        return self.limit - self.spent - self._aside

    async def count(self, messages: Sequence[Message]) -> int:
        """Count the tokens of a prompt, in a thread if it is long."""
        texts = [str(message.get("content") or "") for message in messages]
        if sum(map(len, texts)) <= LONG_TEXT:
            return sum(map(self._count, texts))
        return await asyncio.to_thread(lambda: sum(map(self._count, texts)))

    # Examples.

    def open(self, most: Decimal, place: int) -> Envelope:
        """Set aside what an example may cost, which is free."""
        self._aside += most
        return Envelope(most, place)

    def close(self, envelope: Envelope) -> None:
        """Free what an example did not need."""
        self._aside -= envelope.left
        envelope.left = ZERO
        self._freed()

    # Requests.

    async def hold(self, most: Decimal, envelope: Envelope | None) -> bool:
        """Set aside what a request may cost, of its example's first; False if there is too little.

        Waits for requests in flight, which may turn out to cost less, then takes what is set
        aside for later examples.
        """
        while most - _left(envelope) > self.free:
            if not self._in_flight:
                if envelope is not None and self.give_up_another(envelope):
                    continue
                return False
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter
        taken = min(most, _left(envelope))
        if envelope is not None:
            envelope.left -= taken
        self._aside += most - taken
        self._held += most
        self._in_flight += 1
        try:
            await self._cover()
        except BaseException:
            self.settle(most, ZERO, envelope, is_known=True)
            raise
        return True

    def settle(
        self, most: Decimal, charged: Decimal, envelope: Envelope | None, *, is_known: bool
    ) -> None:
        """Put what a request did cost in the place of what was set aside for it."""
        self._in_flight -= 1
        self._held -= most
        self._aside -= most
        self.spent += charged
        if not is_known:
            self.unknown += charged
        if envelope is not None and charged < most:
            # For what else the example needs.
            envelope.left += most - charged
            self._aside += most - charged
        self._freed()

    def add(self, usd: float) -> None:
        """Count what was charged without being set aside before."""
        self.spent += exact(usd)

    def note_prompt(self, counted: int, reported: int) -> None:
        """Learn how many tokens a model makes of ours, if it is more than was thought."""
        if counted >= _ENOUGH_TOKENS:
            self.margin = max(self.margin, _HEADROOM * reported / counted)

    def _freed(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
        self.changed()

    # What is stored.

    async def _cover(self) -> None:
        """Make sure that what may be spent by now is stored as such."""
        async with self._keeping:
            if self.spent + self._held > self._bound:
                step = (self.limit * _STEP).quantize(Decimal("1e-9"), ROUND_CEILING)
                self._bound = self.spent + self._held + step
                await self._keep(self.describe())

    async def keep(self) -> None:
        """Store how much is spent, now that no request is in flight."""
        async with self._keeping:
            self._bound = self.spent + self._held
            await self._keep(self.describe())

    def describe(self) -> dict[str, Any]:
        """Return what is known, as plain data."""
        return {
            "limit_usd": float(self.limit),
            "spent_usd": float(self.spent),
            "unconfirmed_usd": float(self.unknown),
            "at_most_usd": float(max(self._bound, self.spent + self._held)),
        }

    def refusal(self, most: Decimal) -> str:
        """Say why a request is not made."""
        return (
            f"${self.spent:.6f} of the budget of ${self.limit:f} is spent, and the next request "
            f"may cost up to ${most:.6f}"
        )


def _left(envelope: Envelope | None) -> Decimal:
    return ZERO if envelope is None else envelope.left
