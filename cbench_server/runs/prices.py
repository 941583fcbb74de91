"""Prices in a spec: whether they can be meant, and whether a budget can be kept with them."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

from cbench_server.contract import info_of, optional_method
from cbench_server.datasets.prompts.prompt import Asking
from cbench_server.errors import InvalidInput, InvalidSpec
from cbench_server.models.model import Model
from cbench_server.models.price import checked_price
from cbench_server.models.reader import Reader
from cbench_server.runs.plan import DatasetPlan
from cbench_server.spec import EvaluatorRef, ModelRef, PriceRef, RunSpec
from cbench_server.systems.caller import Caller
from cbench_server.systems.proxy_caller import ProxyCaller

_OF_JUDGES = ("input_price", "output_price")
PriceList = Mapping[str, PriceRef]
"""What models charge, by their names."""


def read_prices(table: Mapping[str, Any]) -> dict[str, PriceRef]:
    """Read prices by model as a configuration gives them."""
    known = [each.name for each in fields(PriceRef)]
    prices = {}
    for model, entry in table.items():
        amounts = entry if isinstance(entry, Mapping) else {}
        unknown = sorted(set(amounts) - set(known))
        if unknown or not {"input_usd", "output_usd"} <= amounts.keys():
            wrong = f'has no "{unknown[0]}"' if unknown else "needs input_usd and output_usd"
            raise InvalidInput(f'the price of "{model}" {wrong}. Known: {", ".join(known)}.')
        for name, amount in amounts.items():
            if isinstance(amount, bool) or not isinstance(amount, int | float):
                raise InvalidInput(f'{name} of "{model}" must be a number, not {amount!r}.')
        price = PriceRef(**{name: float(amount) for name, amount in amounts.items()})
        prices[str(model)] = checked_price(price, f'"{model}"')
    return prices


def with_known_prices(spec: RunSpec, known: PriceList) -> RunSpec:
    """Give the daemon's price to every model that the spec gives none, by its name."""
    if not known:
        return spec
    return replace(
        spec,
        reader=None if spec.reader is None else _priced(spec.reader, known),
        systems=tuple(
            replace(ref, proxy=_priced(ref.proxy, known)) if ref.proxy else ref
            for ref in spec.systems
        ),
        evaluators=tuple(_priced_judge(ref, known) for ref in spec.evaluators),
    )


def _priced(ref: ModelRef, known: PriceList) -> ModelRef:
    price = ref.price or known.get(ref.model)
    return ref if price is ref.price else replace(ref, price=price)


def _priced_judge(ref: EvaluatorRef, known: PriceList) -> EvaluatorRef:
    price = known.get(str(ref.options.get("model")))
    is_model = "base_url" in ref.options and not any(name in ref.options for name in _OF_JUDGES)
    if price is None or not is_model:
        return ref
    given = {
        "input_price": price.input_usd,
        "output_price": price.output_usd,
        "cached_input_price": price.cached_input_usd,
    }
    return replace(ref, options={**ref.options, **given})


def is_priced(spec: RunSpec) -> bool:
    """Whether the run knows what some model charges."""
    models = [spec.reader, *(ref.proxy for ref in spec.systems)]
    return any(model is not None and model.price is not None for model in models) or any(
        ref.options.get(name) is not None for ref in spec.evaluators for name in _OF_JUDGES
    )


def check_prices(spec: RunSpec) -> None:
    """Refuse prices and budgets that cannot be meant, naming the value."""
    models = [("the reader", "spec.reader", spec.reader)]
    for place, ref in enumerate(spec.systems):
        if ref.proxy is not None:
            whose, path = f"the proxy {ref.proxy.base_url}", f"spec.systems[{place}].proxy"
            models.append((whose, path, ref.proxy))
    for whose, path, model in models:
        if model is not None and model.price is not None:
            try:
                checked_price(model.price, whose)
            except InvalidInput as error:
                raise InvalidSpec(str(error), field=f"{path}.price") from error
    if spec.budget_usd is not None:
        check_limit(spec.budget_usd)


def check_limit(budget_usd: float) -> None:
    """Refuse a budget that cannot be meant."""
    if not math.isfinite(budget_usd) or budget_usd <= 0:
        raise InvalidSpec(
            f"budget_usd must be US dollars, more than 0, not {budget_usd}.",
            field="spec.budget_usd",
        )


def check_budget(
    spec: RunSpec,
    callers: Iterable[Caller],
    reader: Reader | None,
    plans: Mapping[str, DatasetPlan],
    prompts: Mapping[str, Asking],
) -> None:
    """Refuse a budget that could not be kept, because a model has no price or no token limit."""
    if spec.budget_usd is None:
        return
    if not is_priced(spec):
        raise InvalidSpec(
            "budget_usd: no model of this run has a price. Give one as the price of a proxy or "
            "reader, in Python price=(IN, OUT), or as input_price and output_price of a judge.",
            field="spec.budget_usd",
            flags="As flags: --proxy-price, --reader-price or --judge-price IN,OUT.",
        )
    for caller in callers:
        if isinstance(caller, ProxyCaller):
            who = f'the proxy "{caller.description.name}"'
            _check_model(caller.model, who, "--proxy-price", prompts)
    if reader is not None:
        model = reader.model
        _check_model(model, f'the reader "{model.client.model}"', "--reader-price", prompts)
    for plan in plans.values():
        for evaluator in plan.evaluators:
            trouble = optional_method(evaluator, "budget_trouble")
            if trouble is not None and (said := trouble()):
                raise InvalidSpec(
                    f'budget_usd: the judge "{evaluator.name}" {said}', field="spec.budget_usd"
                )
            if trouble is None and info_of(evaluator).asks_model:
                raise InvalidSpec(
                    f'budget_usd: the evaluator "{evaluator.name}" asks a model, and what that '
                    "costs cannot be told before. Leave out one of them.",
                    field="spec.budget_usd",
                )


def _check_model(model: Model, who: str, flag: str, prompts: Mapping[str, Asking]) -> None:
    if model.price is None:
        raise InvalidSpec(
            f"budget_usd: {who} has no price. Give it one, in Python with price=(IN, OUT).",
            field="spec.budget_usd",
            flags=f"As a flag: {flag} IN,OUT.",
        )
    for label, asking in prompts.items():
        settings = model.settings(asking.prompt.max_tokens, asking.prompt.stop)
        if not model.answer_limit(settings):
            raise InvalidSpec(
                f'budget_usd: nothing limits the answers of {who} on "{label}", so that one of '
                "them may cost anything. Give a limit: max_tokens of the prompt; in Python "
                'extra_body={"max_tokens": N}.',
                field="spec.prompt.max_tokens",
                flags="As a flag: --max-tokens N.",
            )
