"""Money of a run: who pays for the requests of its rows."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence

from cbench_server.models.account import Account
from cbench_server.models.price import cost_of, exact
from cbench_server.results import EvalRow
from cbench_server.runs.plan import ExampleSource, Plan
from cbench_server.runs.rows import Item
from cbench_server.runs.store import SpooledExample
from cbench_server.spec import PriceRef
from cbench_server.systems.caller import Answer


class Money:
    """Gives every row an account, in a run whose models have prices. A budget adds limits.

    Args:
        prices: Of systems that ask a model by themselves, and report its usage.
    """

    highest = -1
    """The last example that may be called, as far as is known."""
    is_stopped = False
    """Whether no more examples are called."""

    def __init__(self, prices: Mapping[str, PriceRef] | None = None) -> None:
        self._prices = prices or {}
        self.asked_again = Account()
        """Pays for rows that are asked a second time."""

    def begin(self, plan: Plan, source: ExampleSource, pump: Callable[[], None]) -> None:
        """Take note of what is to be paid for; `pump` has calls started that may start."""

    async def appraise(self, page: Sequence[SpooledExample]) -> None:
        """Find out what examples may cost, before they are called."""

    def next_item(self, items: deque[Item], system: str) -> Item | None:
        """Take the next row that can be paid for out of those to be made."""
        item = items.popleft()
        return item if self.try_open([item]) else None

    def try_open(self, items: Sequence[Item]) -> bool:
        """Give rows that belong together their accounts, unless there is too little money."""
        for item in items:
            item.account = item.account or Account()
        return True

    def is_open(self, items: Sequence[Item]) -> bool:
        """Whether the examples of these rows were begun, so that there is money for them."""
        return True

    def spare_account(self) -> Account:
        """Return an account for what is asked beside the examples' own calls."""
        return Account()

    async def open(self, items: Sequence[Item], system: str) -> bool:
        """Do as `try_open` does, and wait for money; False if there will be none."""
        return self.try_open(items)

    def keep_open(self, items: deque[Item]) -> None:
        """Leave out the rows of examples that cannot be paid for any more."""

    def rest(self, system: str) -> None:
        """Take note that a system has no call to start for now."""

    def ended(self, system: str) -> None:
        """Take note that a system has made all its rows."""

    async def all_ended(self) -> None:
        """Wait until what is left of the money is free, if there is too little for everything."""

    def done(self, rows: Sequence[EvalRow]) -> None:
        """Take note of rows that are made."""

    def dropped(self, item: Item) -> None:
        """Take note that a row was not made for want of money."""

    def charge(self, item: Item, answer: Answer, system: str) -> None:
        """Count what a system says of its own usage."""
        usage, account = answer.usage, item.account
        if account is None:
            return
        said = (usage or {}).get("cost_usd")
        if isinstance(said, int | float) and not isinstance(said, bool) and said >= 0:
            account.enter("system", exact(said))
        elif system in self._prices:
            account.enter("system", cost_of(self._prices[system], usage))

    def charge_failure(self, item: Item, system: str) -> None:
        """Take note that a system which pays for a model by itself gave no answer."""
        if item.account is not None and system in self._prices:
            item.account.enter("system", None)
