"""The forecast of a run: what it would do, ask and cost, told without calling anybody."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from cbench_server.contract import info_of
from cbench_server.models.level import Level
from cbench_server.models.model import Model
from cbench_server.models.price import ZERO
from cbench_server.models.reader import Reader
from cbench_server.registry import Registry
from cbench_server.runs.anchors import ANCHORED
from cbench_server.runs.asked_again import FEWEST_ROWS, rows_asked_again
from cbench_server.runs.conclusions import with_arms
from cbench_server.runs.plan import Plan
from cbench_server.runs.prices import PriceList, check_budget, with_known_prices
from cbench_server.runs.prompting import resolve_prompts
from cbench_server.runs.resolution import (
    FindEvaluator,
    resolve_datasets,
    resolve_evaluators,
)
from cbench_server.runs.resolved_dataset import Uploads
from cbench_server.runs.spec_checks import check_whole
from cbench_server.runs.wiring import check_score_field
from cbench_server.runs.worst_cost import WorstCosts
from cbench_server.spec import ModelRef, RunSpec, SystemRef
from cbench_server.systems import is_shipped
from cbench_server.systems.caller import SystemDescription
from cbench_server.systems.openai_proxy import OpenAIProxy
from cbench_server.systems.proxy_caller import ProxyCaller
from cbench_server.tokens import get_tokenizer
from cbench_server.types import Evaluator

_LONG_S = 3600.0


@dataclass
class Forecast:
    """What a run would come to. Numbers of calls and dollars are the most, without retries."""

    systems: list[str] = field(default_factory=list)
    datasets: dict[str, int] = field(default_factory=dict)
    """How many examples, or questions, of each."""
    repeats: int = 1
    rows: int = 0
    calls: dict[str, int] = field(default_factory=dict)
    """By who is asked: systems, reader, or an evaluator that asks a model or another process."""
    addresses: dict[str, str] = field(default_factory=dict)
    """By who is there."""
    tokens: dict[str, int] = field(default_factory=dict)
    """Of what systems are given, and of what a reader or proxy would read at most."""
    usd: float | None = None
    """The most that models with a price may charge; None where no model has one."""
    notes: list[str] = field(default_factory=list)


class _Unopened:
    """A system that is only named, where a plan wants one that can be called."""

    def __init__(self, name: str) -> None:
        self.description = SystemDescription(name)


async def forecast(
    spec: RunSpec, registry: Registry, uploads: Uploads, find: FindEvaluator, known: PriceList
) -> Forecast:
    """Read the datasets of a spec, and tell what a run would do; `find` must not call anyone."""
    check_whole(spec, registry)
    spec = with_known_prices(with_arms(spec), known)
    datasets = resolve_datasets(spec, registry, uploads)
    plans = await resolve_evaluators(spec, datasets, find)
    check_score_field(spec.score_field, plans.values())
    prompts = await asyncio.to_thread(resolve_prompts, spec, datasets)
    callers: Any = [_caller(ref) for ref in spec.systems]
    reader = None if spec.reader is None else Reader(_model(spec.reader, "reader"), Level(), None)
    check_budget(spec, callers, reader, plans, prompts)
    plan = Plan(
        run_id="",
        callers=callers,
        datasets=plans,
        tokenizer=get_tokenizer(spec.tokenizer or None),
        text_fields=frozenset(spec.text_fields) or None,
        repeats=spec.repeats,
        kind=spec.kind,
        reader=reader,
        query_budget=spec.query_budget,
        prompts=prompts,
    )
    made = Forecast([each.description.name for each in callers], repeats=spec.repeats)
    made.addresses = dict(_addresses(spec))
    counting = _Counting(made, plan)
    for dataset in datasets:
        await asyncio.to_thread(counting.take, dataset)
    counting.end(spec)
    return made


def _caller(ref: SystemRef) -> Any:
    name = ref.name or ref.builtin or ref.attached or ref.served_name or ref.target
    if ref.proxy is None:
        return _Unopened(name or "predictions")
    proxy = OpenAIProxy(ref.proxy.base_url, ref.proxy.model, api_key="", timeout=_LONG_S)
    return ProxyCaller(proxy, _model(ref.proxy, "system"), name=ref.name or ref.proxy.base_url)


def _model(ref: ModelRef, origin: str) -> Model:
    proxy = OpenAIProxy(
        ref.base_url, ref.model, api_key="", timeout=_LONG_S, extra_body=ref.options
    )
    return Model(
        proxy.client,
        origin=origin,
        system_prompt=ref.system_prompt,
        context_window=ref.context_window,
        price=ref.price,
    )


def _addresses(spec: RunSpec) -> Iterator[tuple[str, str]]:
    for ref in spec.systems:
        where = ", ".join((ref.target, *ref.replicas)) or (ref.proxy.base_url if ref.proxy else "")
        if where:
            yield f"system {ref.name or ref.served_name or where}", where
    if spec.reader is not None:
        yield "reader", spec.reader.base_url
    for each in spec.evaluators:
        where = each.target or str(each.options.get("base_url") or "")
        if where:
            yield f"evaluator {each.name}", where


class _Counting:
    """Counts what the rows of a plan ask for, example by example."""

    def __init__(self, made: Forecast, plan: Plan) -> None:
        self._made = made
        self._plan = plan
        self._costs = WorstCosts(plan)
        self._usd = ZERO
        self._proxies = sum(isinstance(each, ProxyCaller) for each in plan.callers)
        self._ordinal = 0

    def take(self, dataset: Any) -> None:
        """Read a dataset to its end."""
        made, plan, label = self._made, self._plan, dataset.ref.label
        systems, repeats = len(plan.callers), plan.repeats
        withheld = plan.datasets[label].reference_fields
        for spooled in dataset.open(self._ordinal, plan.tokenizer, plan.text_fields):
            self._ordinal = spooled.ordinal + 1
            made.datasets[label] = made.datasets.get(label, 0) + 1
            made.rows += systems * repeats
            self._ask("systems", systems * repeats)
            given = sum(n for name, n in spooled.field_tokens.items() if name not in withheld)
            self._read("given to systems", given * systems * repeats)
            if plan.reader is not None and systems > self._proxies:
                times = (systems - self._proxies) * repeats
                self._ask("reader", times)
                self._read("read by the reader, at most", self._costs.read(spooled)[1] * times)
            if "turns" in spooled.example and plan.kind == "memory":
                # Its first question brings it. A long one is put in by a call per megabyte.
                self._ask("systems, to forget and take in conversations", 3 * systems * repeats)
            for evaluator in plan.datasets[label].evaluators:
                if times := _requests(evaluator):
                    self._ask(f"evaluator {evaluator.name}", times * systems * repeats)
            self._usd += sum(self._costs.of(spooled).values(), ZERO) * repeats

    def _ask(self, who: str, times: int) -> None:
        self._made.calls[who] = self._made.calls.get(who, 0) + times

    def _read(self, what: str, tokens: int) -> None:
        self._made.tokens[what] = self._made.tokens.get(what, 0) + tokens

    def end(self, spec: RunSpec) -> None:
        """Add what a run asks for beside its rows."""
        made = self._made
        examples = sum(made.datasets.values())
        ours = sum(bool(ref.predictions) or is_shipped(ref.builtin) for ref in spec.systems)
        is_asked = spec.kind != "memory" and examples >= FEWEST_ROWS
        again = min(rows_asked_again(spec), examples) if is_asked else 0
        if again and len(spec.systems) > ours:
            self._ask("systems, asked again", again * (len(spec.systems) - ours))
        if spec.reader is not None and spec.anchors is not False:
            most = 3 * min(examples, ANCHORED)
            self._ask("reader, for anchors", most)
            made.notes.append(f"anchors add up to {most:,} rows of their own")
        if spec.matched_controls:
            made.notes.append("matched controls add rows, for which no system is asked")
        if any("judge" in who for who in made.calls):
            made.notes.append("a judge is also asked about controls, unless it was before")
        if spec.kind == "memory":
            made.notes.append("conversations of more than a megabyte take a call for each")
        if any(ref.target and not ref.served_name for ref in spec.systems):
            made.notes.append("a target that serves several systems makes these rows for each")
        self._price(spec)

    def _price(self, spec: RunSpec) -> None:
        models = [ref.proxy for ref in spec.systems if ref.proxy] + [spec.reader]
        is_priced = any(each is not None and each.price is not None for each in models)
        if is_priced or self._usd > ZERO:
            self._made.usd = float(self._usd.quantize(Decimal("0.000001")))


def _requests(evaluator: Evaluator) -> int:
    """Return how often an evaluator asks somebody for one row."""
    said = info_of(evaluator)
    if isinstance(evaluator, Elsewhere):
        return 1
    return int((said.options or {}).get("repeats") or 1) if said.asks_model else 0


class Elsewhere:
    """An evaluator in another process, which is not asked what it offers."""

    def __init__(self, name: str) -> None:
        self.name = name

    def score(self, original: Mapping[str, Any], processed: Mapping[str, Any]) -> dict[str, float]:
        """Give no scores."""
        return {}
