"""What proxies and judges cost in `evaluate()`, as far as they say what they used."""

import math
from collections.abc import Iterator
from typing import Any

import pytest

from cbench_server import evaluate
from cbench_server.errors import InvalidInput
from cbench_server.evaluators.judge.llm_judge import LLMJudge
from cbench_server.results import EvalResult
from cbench_server.systems.openai_proxy import OpenAIProxy
from tests.fixtures.model_server import clean_environment
from tests.fixtures.priced_model import PricedModel, priced_model

__all__ = ["clean_environment"]

EXAMPLES = [
    {"id": n, "context": f"Box {n} holds {n} balls.", "question": "How many?", "answer": str(n)}
    for n in range(6)
]
PRICE = (2.5, 10.0, 1.25)


@pytest.fixture
def model() -> Iterator[PricedModel]:
    with priced_model("4") as served:
        yield served


def proxy(model: PricedModel, **options: Any) -> OpenAIProxy:
    return OpenAIProxy(model.url, "m", "asked", **{"retry_base_delay": 0.001, **options})


def run(*systems: Any, **options: Any) -> EvalResult:
    return evaluate(list(systems), EXAMPLES, **{"progress": False, **options})


@pytest.mark.filterwarnings("ignore:judge")
def test_proxies_and_judges_with_prices(model: PricedModel) -> None:
    model.cached = 2
    judge = LLMJudge(
        model.url, "j", input_price=2.5, output_price=10.0, cached_input_price=1.25, timeout=20.0
    )
    result = run(proxy(model, price=PRICE), evaluators=[judge])
    bill = float(model.bill)
    cost = result.config["cost"]
    assert cost["usd"] == pytest.approx(bill, rel=1e-12)
    assert set(cost["by"]) == {"system", "judge", "judge_controls"}
    assert {frozenset(row.cost_usd) for row in result.rows} == {frozenset({"system", "llm-judge"})}
    rows = math.fsum(usd for row in result.rows for usd in row.cost_usd.values())
    assert result.summary["asked"]["cost_usd"] == pytest.approx(rows, rel=1e-12)
    # With the words of the prompt, as a daemon asks it.
    assert result.summary["asked"]["mean_prompt_tokens"] == 32.0
    part = result.filter(example_id=3)
    assert part.config["cost"]["by"]["system"] == part.rows[0].cost_usd["system"]


def test_without_a_price_there_is_no_cost(model: PricedModel) -> None:
    result = run(proxy(model))
    assert "cost" not in result.config
    assert not any("usd" in key for key in result.summary["asked"])
    assert result.summary["asked"]["total_completion_tokens"] == 6.0


def test_what_is_not_reported_and_what_failed_is_unknown(model: PricedModel) -> None:
    model.reports = False

    def fail(number: int, handler: Any) -> None:
        if number % 2:
            handler.reply(200, "{}")

    model.before = fail
    result = run(proxy(model, price=PRICE, max_retries=0))
    assert {row.failure is None for row in result.rows} == {True, False}
    assert all("COST_UNKNOWN" in row.marks and not row.cost_usd for row in result.rows)
    assert result.config["cost"] == {"usd": 0.0, "by": {}, "rows_unknown": 6}
    values = result.summary["asked"]
    assert (values["cost_usd"], values["num_cost_unknown"]) == (None, 6.0)


@pytest.mark.parametrize("price", [(-1.0, 2.0), (1.0, float("inf")), (1.0, 2.0, float("nan"))])
def test_a_price_that_cannot_be_meant(price: tuple[float, ...]) -> None:
    with pytest.raises(InvalidInput, match=r"_usd of a proxy must be US dollars per million"):
        OpenAIProxy("http://127.0.0.1:9", price=price)  # type: ignore[arg-type]


@pytest.mark.parametrize("price", [5, "12", (), (1,), (1, "a"), (1, 2, 3, 4), (1, None)])
def test_what_is_no_price(price: Any) -> None:
    with pytest.raises(
        InvalidInput, match=r"price must be \(IN, OUT\) or \(IN, OUT, CACHED\), not"
    ):
        OpenAIProxy("http://127.0.0.1:9", price=price)


def test_what_is_asked_again_is_part_of_the_cost(model: PricedModel) -> None:
    many = [{**EXAMPLES[n % 6], "id": n} for n in range(20)]
    result = evaluate([proxy(model, price=PRICE)], many, progress=False)
    assert len(model.requests) == 25
    cost = result.config["cost"]
    assert cost["usd"] == pytest.approx(float(model.bill), rel=1e-12)
    assert cost["by"]["asked_again"] == pytest.approx(float(sum(model.charged[20:])), rel=1e-12)
    assert result.summary["asked"]["num_asked_twice"] == 5.0
    assert "asked_again" not in result.filter(example_id=3).config["cost"]["by"]
