"""The money of one run: opened before its first request, told of after its last."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from cbench_server.errors import InvalidSpec, RunFailed, WrongState
from cbench_server.models.account import ACCOUNT, Account
from cbench_server.models.ledger import Ledger
from cbench_server.models.price import ZERO, exact
from cbench_server.results import Failure
from cbench_server.runs.budget import RunBudget
from cbench_server.runs.connections import Connections
from cbench_server.runs.finished import finished_examples, may_be_partial
from cbench_server.runs.money import Money
from cbench_server.runs.prices import check_limit, is_priced
from cbench_server.runs.run_cost import (
    ASKED_AGAIN,
    JUDGE_CONTROLS,
    cost_note,
    run_cost,
    with_beside,
)
from cbench_server.runs.run_rows import RunRows
from cbench_server.spec import STOPPED_BY_BUDGET, PriceRef, Run, RunNote, RunState


class RunMoney:
    """Looks after prices and the budget on behalf of a run at work.

    Args:
        prices: Of systems that ask a model by themselves, and report its usage.
    """

    def __init__(self, store: RunRows, prices: Mapping[str, PriceRef] | None = None) -> None:
        self._store = store
        self._prices = prices
        self._run_id = ""
        self._ledger: Ledger | None = None
        self._beside = Account()
        """Of what is asked beside rows: controls of judges, corrected references."""
        self.money: Money | None = None

    @property
    def _accounts(self) -> dict[str, Account]:
        again = self.money.asked_again if self.money is not None else Account()
        return {JUDGE_CONTROLS: self._beside, ASKED_AGAIN: again}

    @property
    def budget(self) -> tuple[float, float]:
        """US dollars that may be spent, and that are; none where there is no budget."""
        ledger = self._ledger
        return (0.0, 0.0) if ledger is None else (float(ledger.limit), float(ledger.spent))

    async def open(self, run: Run, opened: Connections) -> None:
        """Let everything that is asked from here on be paid for."""
        if not is_priced(run.spec):
            return
        self.money = Money(self._prices)
        self._run_id = run.run_id
        limit = limit_of(run)
        if limit is not None and not run.parent_run_id:
            names = [*opened.names]

            async def keep(known: dict[str, Any]) -> None:
                config = (await self._store.get_run(run.run_id)).config
                budget = {**known, "systems": names}
                update = {"config": {**config, "budget": budget}}
                await self._store.append(run.run_id, [], update=update)

            tokenizer = opened.count_by(run.spec)
            spent = await self._spent(run)
            self._ledger = Ledger(limit, spent, tokenizer, keep)
            self.money = RunBudget(self._ledger)
        self._beside = Account(self._ledger)
        ACCOUNT.set(self._beside)

    async def _spent(self, run: Run) -> Decimal:
        """Return the most that a run can have spent: what is stored, or what its rows cost."""
        known = run.config.get("budget", {}).get("at_most_usd")
        stored = ZERO if known is None else exact(known)
        if not run.completed_rows:
            return stored
        return max(stored, exact((await run_cost(self._store, run))["usd"]))

    async def keep(self) -> None:
        """Store what is spent, now that nothing is asked."""
        if self._ledger is not None:
            await self._ledger.keep()
        accounts = self._accounts
        if any(each.costs or each.has_unknown for each in accounts.values()):
            config = (await self._store.get_run(self._run_id)).config
            update = {"config": {**config, "cost": with_beside(config, accounts)}}
            await self._store.append(self._run_id, [], update=update)
            self._beside = Account(self._ledger)
            ACCOUNT.set(self._beside)
            if self.money is not None:
                self.money.asked_again = Account(self._ledger)

    @property
    def is_stopped(self) -> bool:
        """Whether the budget has ended the run."""
        return self.money is not None and (self.money.is_stopped or self._beside.is_refused)

    def check(self) -> None:
        """Raise RunFailed if the budget has ended the run."""
        if self.is_stopped:
            raise RunFailed(self._failure())

    def ending(self, state: RunState, failure: Failure | None) -> tuple[RunState, Failure | None]:
        """Return how a run ends: by its budget, if that is why something else went wrong."""
        if self.is_stopped and state is RunState.FAILED:
            return state, self._failure()
        return state, failure

    def _failure(self) -> Failure:
        assert self._ledger is not None
        assert isinstance(self.money, RunBudget)
        ledger, most = self._ledger, self.money.most
        next_one = f", and the next example may cost up to {usd(most)} with all systems"
        return Failure(
            "daemon",
            "BUDGET_SPENT",
            f"stopped: budget. {usd(ledger.spent)} of {usd(ledger.limit)} is spent"
            f"{next_one if most else ''}",
            field="spec.budget_usd",
        )

    async def described(self, run: Run, state: RunState) -> tuple[dict[str, Any], list[RunNote]]:
        """Return what belongs into the record of a run that ends, and what to say of it."""
        config: dict[str, Any] = {}
        notes: list[RunNote] = []
        if self.money is not None:
            config["cost"] = await run_cost(self._store, run, self._accounts)
            notes.append(cost_note(config["cost"], self.budget[1]))
        if self._ledger is not None:
            await self._ledger.keep()
            run = await self._store.get_run(run.run_id)
            config["budget"] = run.config["budget"]
        if may_be_partial(run) and not run.parent_run_id and state is not RunState.SUCCEEDED:
            notes.append(await self._stop_note(run))
        return config, notes

    async def _stop_note(self, run: Run) -> RunNote:
        finished, total = await finished_examples(self._store, run)
        if len(finished) == total:
            return RunNote(
                STOPPED_BY_BUDGET,
                f"Stopped before its end: all systems have finished all {total:,} examples, but "
                "what the run adds to them, such as controls, is not complete.",
            )
        count = f"{len(finished):,} examples, of a number that was not yet known"
        if total is not None:
            count = f"{len(finished):,} of {total:,} examples"
        return RunNote(
            STOPPED_BY_BUDGET,
            f"Stopped before its end: the figures cover {count}, those that all systems have "
            "finished.",
        )


def limit_of(run: Run) -> Decimal | None:
    """Return the budget of a run, as it was raised last; None if it has none."""
    known = run.config.get("budget", {}).get("limit_usd", run.spec.budget_usd)
    return None if known is None else exact(known)


def raised_budget(run: Run, budget_usd: float | None) -> dict[str, Any]:
    """Return the changes that let a run go on with a budget, or refuse them with a reason."""
    limit = limit_of(run)
    budget: Mapping[str, Any] = run.config.get("budget", {})
    if budget_usd is None:
        if run.has_spent_budget:
            raise WrongState(
                f'run "{run.run_id}" has stopped at its budget of {usd(limit or ZERO)}. Go on '
                f"with more: cbench resume {run.run_id} --budget-usd MORE"
            )
        return {}
    check_limit(budget_usd)
    if limit is None:
        raise WrongState(f'run "{run.run_id}" was started without a budget; resume it without.')
    spent = exact(budget.get("at_most_usd", 0.0))
    if exact(budget_usd) <= spent:
        raise InvalidSpec(
            f"budget_usd is what the run may cost in all, and {usd(spent)} of it is spent: give "
            f"more than that, not {budget_usd:g}."
        )
    return {"config": {**run.config, "budget": {**budget, "limit_usd": budget_usd}}}


def usd(amount: Decimal) -> str:
    """Write an amount of money with as many digits as it has, six at most."""
    return f"${amount.quantize(Decimal('1e-6')).normalize():f}"
