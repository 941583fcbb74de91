"""The budget of a run: examples are begun only if all systems can be paid to finish them.

Before an example is begun, what it may cost with all systems is set aside in an
envelope, so that a run whose money ends has the same examples of every system.
Requests take from the envelope of their example; what is left of it is free
again when the last row of the example is made. When the next example does not
fit, and nothing is at work whose end would free money, the run stops.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from cbench_server.models.account import Account
from cbench_server.models.ledger import Envelope, Ledger
from cbench_server.models.price import PROMPT_MARGIN, ZERO
from cbench_server.results import EvalRow
from cbench_server.runs.lane import COUNTING
from cbench_server.runs.money import Money
from cbench_server.runs.plan import ExampleSource, Plan
from cbench_server.runs.rows import Item
from cbench_server.runs.store import SpooledExample
from cbench_server.runs.worst_cost import WorstCosts
from cbench_server.systems.caller import Answer

# Examples that one system may be ahead of another: they all have money set aside.
_OPEN = 64


@dataclass
class _Example:
    """What is known of an example that is not done."""

    place: int
    most: Decimal
    """Of all its rows that are missing."""
    rows: int
    each: dict[str, Decimal]
    """Of one row, by system."""
    envelope: Envelope | None = None


class RunBudget(Money):
    """Decides which examples are begun. Belongs to one event loop."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__()
        self.ledger = ledger
        self.asked_again = Account(ledger)
        ledger.changed = self._changed
        ledger.give_up_another = self._give_up_another
        self.most = ZERO
        """What the example may cost that could not be begun."""
        self._examples: dict[int, _Example] = {}
        self._systems: dict[str, int] = {}
        """How many rows each makes of an example."""
        self._next = 0
        """The first example that is not appraised."""
        self._appraising = asyncio.Lock()
        self._open = 0
        self._at_work = 0
        """Rows begun and not yet made."""
        self._first: int | None = None
        """The example that waits for money; no other is begun before it."""
        self._resting: set[str] = set()
        self._ended: set[str] = set()
        self._is_pumping = False
        self._news = asyncio.Event()
        self._pump: Callable[[], None] = lambda: None

    def begin(self, plan: Plan, source: ExampleSource, pump: Callable[[], None]) -> None:
        """Pay for the rows of a plan, in the place of those of an earlier one."""
        names = [caller.description.name for caller in plan.callers]
        self._systems = {name: plan.repeats_of.get(name, plan.repeats) for name in names}
        self._examples, self._next, self._first, self._open = {}, 0, None, 0
        self.highest = -1
        self._ended.clear()
        self._worst, self._source, self._pump = WorstCosts(plan), source, pump

    async def appraise(self, page: Sequence[SpooledExample]) -> None:
        """Find out what examples may cost with all systems, whichever lane reads them first."""
        async with self._appraising:
            new = [each for each in page if each.ordinal >= self._next]
            if not new:
                return
            start, stop = new[0].ordinal, new[-1].ordinal + 1
            done = {name: await self._source.completed(name, start, stop) for name in self._systems}
            loop = asyncio.get_running_loop()
            costs = await loop.run_in_executor(COUNTING, lambda: [*map(self._worst.of, new)])
            for spooled, each in zip(new, costs, strict=True):
                missing = {
                    name: sum((spooled.ordinal, n) not in done[name] for n in range(repeats))
                    for name, repeats in self._systems.items()
                }
                most = sum((each[name] * count for name, count in missing.items()), ZERO)
                rows = sum(missing.values())
                if rows:
                    self._examples[spooled.ordinal] = _Example(spooled.ordinal, most, rows, each)
            self._next = stop

    # Beginning.

    def next_item(self, items: deque[Item], system: str) -> Item | None:
        """Take the next row, or the first of an example that others have begun."""
        for place, item in enumerate(items):
            if place == 0:
                is_open = self._admit([item.spooled.ordinal], is_waiting=True)
            else:
                is_open = self._is_open(item.spooled.ordinal)
            if is_open:
                del items[place]
                self._begin([item])
                return item
        return None

    def try_open(self, items: Sequence[Item]) -> bool:
        """Begin rows that belong together; False, for now, if there is too little money."""
        if not self._admit([item.spooled.ordinal for item in items], is_waiting=False):
            return False
        self._begin(items)
        return True

    async def open(self, items: Sequence[Item], system: str) -> bool:
        """Begin rows that belong together, when there is money; False if there will be none."""
        ordinals = [item.spooled.ordinal for item in items]
        while not self._admit(ordinals, is_waiting=True):
            if self.is_stopped:
                return False
            self._news.clear()
            self.rest(system)
            if self.is_stopped:
                return False
            await self._news.wait()
        self._begin(items)
        return True

    def keep_open(self, items: deque[Item]) -> None:
        """Leave only rows of examples that were begun."""
        kept = [item for item in items if self._is_open(item.spooled.ordinal)]
        items.clear()
        items.extend(kept)

    def is_open(self, items: Sequence[Item]) -> bool:
        """See Money."""
        return all(self._is_open(item.spooled.ordinal) for item in items)

    def _is_open(self, ordinal: int) -> bool:
        known = self._examples.get(ordinal)
        return known is not None and known.envelope is not None

    def _admit(self, ordinals: Sequence[int], *, is_waiting: bool) -> bool:
        new = [self._examples[each] for each in ordinals if not self._is_open(each)]
        if not new:
            return True
        if self.is_stopped or self._open >= _OPEN or self._first not in (None, ordinals[0]):
            return False
        # Models may make more tokens of a prompt than was thought when it was appraised.
        factor = self.ledger.margin / PROMPT_MARGIN
        most = sum((example.most for example in new), ZERO) * factor
        if most > self.ledger.free:
            self.most = most
            if is_waiting:
                self._first = ordinals[0]
            return False
        self._first = None
        for example in new:
            example.envelope = self.ledger.open(example.most * factor, example.place)
        self._open += len(new)
        self.highest = max(self.highest, *ordinals)
        return True

    def _begin(self, items: Sequence[Item]) -> None:
        for item in items:
            if item.account is None:
                envelope = self._examples[item.spooled.ordinal].envelope
                item.account = Account(self.ledger, envelope)
                self._at_work += 1

    def spare_account(self) -> Account:
        """Return an account that takes from what is free."""
        return Account(self.ledger)

    def charge(self, item: Item, answer: Answer, system: str) -> None:
        """Count what a system says of its own usage, which nobody could set aside."""
        before = sum(item.account.costs.values()) if item.account else 0.0
        super().charge(item, answer, system)
        if item.account is not None:
            self.ledger.add(sum(item.account.costs.values()) - before)

    # Ending.

    def done(self, rows: Sequence[EvalRow]) -> None:
        """Close the envelopes of examples of which all rows are made."""
        for row in rows:
            self._at_work -= not row.reused
            example = self._examples.get(row.ordinal)
            if example is None:
                continue
            example.rows -= 1
            if row.reused and example.envelope is None:
                # It is not to be paid for.
                example.most -= example.each[row.system]
            if not example.rows:
                del self._examples[row.ordinal]
                if example.envelope is not None:
                    self._open -= 1
                    self.ledger.close(example.envelope)
        self._changed()

    def dropped(self, item: Item) -> None:
        """Stop: what an example costs was underrated, and the rest is not enough."""
        self._at_work -= 1
        self._stop()

    def rest(self, system: str) -> None:
        """Take note that a system has no call to start; stop if nothing is at work either."""
        self._resting.add(system)
        is_still = not self._at_work and self._resting | self._ended >= self._systems.keys()
        if is_still and self._first is not None:
            self._stop()

    def ended(self, system: str) -> None:
        """Take note that a system has made all its rows, so that nobody waits for it."""
        self._ended.add(system)
        self._changed()

    async def all_ended(self) -> None:
        """Wait until every system has made all its rows, which come before all else."""
        while not (self.is_stopped or self._ended >= self._systems.keys()):
            self._news.clear()
            await self._news.wait()

    def _give_up_another(self, envelope: Envelope) -> bool:
        """Free the money of the last example that is begun and not done, for an earlier one.

        That is, if requests cost more than was thought: some examples of all systems are worth
        more than all examples of some.
        """
        others = [
            example.envelope
            for example in self._examples.values()
            if example.envelope is not None and example.envelope.left > 0
        ]
        last = max(others, key=lambda each: each.place, default=envelope)
        if last.place <= envelope.place:
            return False
        self._stop()
        self.ledger.close(last)
        return True

    def _stop(self) -> None:
        self.is_stopped = True
        self._changed()

    def _changed(self) -> None:
        """Have calls started that may start, once what happens now has happened."""
        self._resting.clear()
        self._news.set()
        if not self._is_pumping:
            self._is_pumping = True
            asyncio.get_running_loop().call_soon(self._pump_now)

    def _pump_now(self) -> None:
        self._is_pumping = False
        self._pump()
