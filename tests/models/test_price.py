"""Prices and the ledger: what requests cost, exactly, and what is set aside for them."""

import asyncio
import math
from decimal import Decimal
from typing import Any

import pytest

from cbench_server.errors import CallFailed, InvalidInput
from cbench_server.models.account import Account
from cbench_server.models.ledger import Ledger
from cbench_server.models.price import PROMPT_MARGIN, checked_price, cost_of, most_of
from cbench_server.results import EvalRow
from cbench_server.spec import PriceRef

PRICE = PriceRef(0.15, 0.6, 0.075)


def usage(prompt: int, answer: int, **more: Any) -> dict[str, Any]:
    return {"prompt_tokens": prompt, "completion_tokens": answer, **more}


@pytest.mark.parametrize(
    ("price", "reported", "cost"),
    [
        (PRICE, usage(1000, 10), "0.000156"),
        (PRICE, usage(1000, 10, cached_prompt_tokens=400), "0.000126"),
        # More than the whole prompt cannot have been in the cache.
        (PRICE, usage(100, 0, cached_prompt_tokens=400), "0.0000075"),
        (PriceRef(0.15, 0.6), usage(1000, 10, cached_prompt_tokens=400), "0.000156"),
        (PriceRef(0.15, 0.6, 0.0), usage(1000, 0, cached_prompt_tokens=1000), "0"),
        (PRICE, {"input_tokens": 1000, "output_tokens": 10}, "0.000156"),
        (PriceRef(), usage(1000, 10), "0"),
    ],
)
def test_a_cost_is_exact(price: PriceRef, reported: dict[str, Any], cost: str) -> None:
    assert cost_of(price, reported) == Decimal(cost)


@pytest.mark.parametrize(
    "reported",
    [None, {}, {"prompt_tokens": 3}, usage(-1, 2), {**usage(1, 2), "completion_tokens": "2"}],
)
def test_usage_that_does_not_tell_is_no_cost(reported: dict[str, Any] | None) -> None:
    assert cost_of(PRICE, reported) is None


def test_the_most_has_the_margin_the_limit_and_the_dearest_prompt() -> None:
    # 100 tokens are 125 at most, and 32 for what a request has besides.
    assert most_of(PriceRef(1.0, 2.0), 100, 50, Decimal(0)) == Decimal("0.000257")
    assert most_of(PriceRef(1.0, 2.0, 3.0), 100, 50, Decimal(0)) == Decimal("0.000571")
    assert most_of(PriceRef(1.0, 2.0), 100, 50, Decimal(3)) == Decimal("0.000432")


@pytest.mark.parametrize("amount", [-0.1, math.nan, math.inf])
def test_a_price_that_cannot_be_one(amount: float) -> None:
    with pytest.raises(InvalidInput, match="output_usd of the reader must be US dollars"):
        checked_price(PriceRef(1.0, amount), "the reader")


def ledger_of(limit: str, kept: list[dict[str, Any]] | None = None) -> Ledger:
    async def keep(known: dict[str, Any]) -> None:
        if kept is not None:
            kept.append(known)

    return Ledger(Decimal(limit), Decimal(0), lambda text: len(text.split()), keep)


def message(words: int) -> list[dict[str, str]]:
    return [{"role": "user", "content": "word " * words}]


async def test_many_tiny_costs_add_up_to_what_the_rows_say() -> None:
    account = Account()
    for _ in range(1000):
        payment = await account.open("reader", PRICE, message(1), 1)
        payment.answered(usage(1, 0))
    row = EvalRow("a", 1, {}, 0, 0)
    account.settle(row)
    assert row.cost_usd == {"reader": 0.00015}


async def test_what_may_be_spent_is_stored_before_it_is() -> None:
    kept: list[dict[str, Any]] = []
    ledger = ledger_of("1", kept)
    account = Account(ledger)
    payment = await account.open("reader", PriceRef(1000.0, 1000.0), message(100), 50)
    most = 0.207
    assert kept[-1]["at_most_usd"] >= most
    assert (ledger.spent, float(ledger.free)) == (0, 1 - most)
    payment.answered(usage(90, 5))
    assert float(ledger.spent) == 0.095
    assert float(ledger.free) == 0.905
    await ledger.keep()
    assert kept[-1] == {
        "limit_usd": 1.0,
        "spent_usd": 0.095,
        "unconfirmed_usd": 0.0,
        "at_most_usd": 0.095,
    }


async def test_a_request_waits_for_those_in_flight_and_is_refused_when_there_are_none() -> None:
    ledger = ledger_of("0.3")
    price = PriceRef(1000.0, 1000.0)
    first = await Account(ledger).open("reader", price, message(100), 50)
    account = Account(ledger)
    second = asyncio.create_task(account.open("reader", price, message(100), 50))
    await asyncio.sleep(0)
    assert not second.done()
    first.refused()
    payment = await second
    third = asyncio.create_task(Account(ledger).open("reader", price, message(100), 50))
    await asyncio.sleep(0)
    payment.lost()
    payment.lost()
    with pytest.raises(CallFailed, match=r"\$0\.207000 of the budget of \$0\.3 is spent"):
        await third
    assert (float(ledger.spent), float(ledger.unknown)) == (0.207, 0.207)
    assert account.has_unknown
    assert not account.is_refused


async def test_an_example_pays_from_its_own_envelope_then_from_what_is_free() -> None:
    ledger = ledger_of("1")
    envelope = ledger.open(Decimal("0.9"), 0)
    price = PriceRef(1000.0, 1000.0)
    with pytest.raises(CallFailed):
        await Account(ledger).open("reader", price, message(100), 50)
    inside = Account(ledger, envelope)
    for _ in range(3):
        payment = await inside.open("reader", price, message(100), 50)
        payment.answered(usage(100, 50))
    assert float(envelope.left) == pytest.approx(0.45)
    payment = await inside.open("reader", price, message(300), 50)
    # It said more than was set aside, and the ledger believes it.
    payment.answered(usage(900, 50))
    assert float(ledger.spent) == pytest.approx(1.4)
    assert ledger.margin > PROMPT_MARGIN
    ledger.close(envelope)
    assert float(ledger.free) == pytest.approx(-0.4)
