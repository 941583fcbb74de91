"""Worst costs: about how much the rows of an example may cost, before anything is asked.

They decide whether an example is begun. What a request may cost is counted again,
by the prompt itself, before it is sent.
"""

from decimal import Decimal

from cbench_server.contract import optional_method
from cbench_server.datasets.catalog.memory import transcript
from cbench_server.datasets.prompts.prompt import Prompt
from cbench_server.models.model import Model
from cbench_server.models.price import PROMPT_MARGIN, ZERO, most_of
from cbench_server.runs.plan import Plan
from cbench_server.runs.reading import reading
from cbench_server.runs.store import SpooledExample
from cbench_server.systems.proxy_caller import ProxyCaller
from cbench_server.types import Example

# Of systems that answer by themselves, whose answers nobody limits.
_USUAL_ANSWER = 1024


class WorstCosts:
    """Appraises the examples of one plan. Takes as long as their texts are long."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._talk = 0
        """Tokens of the conversation that the last question was about."""

    def of(self, spooled: SpooledExample) -> dict[str, Decimal]:
        """Return what a row of an example may cost, by system."""
        plan = self._plan
        example, dataset = spooled.example, spooled.dataset
        costs: dict[str, Decimal] = {}
        read: tuple[Decimal, int] | None = None
        for caller in plan.callers:
            if isinstance(caller, ProxyCaller):
                cost, answer = self._asked(caller.model, spooled)
            else:
                read = read or self._read(spooled)
                cost, answer = read
            costs[caller.description.name] = cost + self._judged(dataset, example, answer)
        return costs

    def _asked(self, model: Model, spooled: SpooledExample) -> tuple[Decimal, int]:
        """Return what an answer of a proxy may cost, turn by turn, and how long it may be."""
        plan, example = self._plan, spooled.example
        withheld = plan.datasets[spooled.dataset].reference_fields
        visible = {name: value for name, value in example.items() if name not in withheld}
        asking = plan.asking(spooled.dataset)
        limit = model.answer_limit(model.settings(asking.prompt.max_tokens, asking.prompt.stop))
        if model.price is None:
            return ZERO, limit
        messages = model.whole(asking.messages(visible))
        counts = [plan.tokenizer(str(message.get("content") or "")) for message in messages]
        if not (visible.get("multi_turn") and isinstance(visible.get("turns"), list)):
            return most_of(model.price, sum(counts), limit, PROMPT_MARGIN), limit
        cost, before = ZERO, 0
        for message, tokens in zip(messages, counts, strict=True):
            before += tokens
            if message.get("role") == "user":
                cost += most_of(model.price, before, limit, PROMPT_MARGIN)
                before += limit
        return cost, limit

    def _read(self, spooled: SpooledExample) -> tuple[Decimal, int]:
        """Return what the reader's answer may cost if a system leaves the context as it is."""
        plan = self._plan
        if plan.reader is None:
            return ZERO, _USUAL_ANSWER
        model = plan.reader.model
        prompt, tokens = self.read(spooled)
        limit = model.answer_limit(model.settings(prompt.max_tokens, prompt.stop))
        if model.price is None:
            return ZERO, limit
        return most_of(model.price, tokens, limit, PROMPT_MARGIN), limit

    def read(self, spooled: SpooledExample) -> tuple[Prompt, int]:
        """Return what the reader is asked by, and the tokens that it reads at most."""
        plan, example = self._plan, spooled.example
        if plan.kind == "memory":
            asked = reading(plan, spooled.dataset, example, {"context": ""})
            return asked.prompt, asked.tokens + self._remembered(example)
        texts = ("context", "question")
        known = {"context": ""} | {name: example[name] for name in texts if name in example}
        asked = reading(plan, spooled.dataset, example, known)
        return asked.prompt, asked.tokens

    def _remembered(self, example: Example) -> int:
        """Count what a memory may hand to the reader: all of it, or what the run allows."""
        if self._plan.query_budget is not None:
            return self._plan.query_budget
        if "turns" in example:
            # Only the first question of a conversation has them.
            self._talk = self._plan.tokenizer(transcript(example["turns"]))
        return self._talk

    def _judged(self, dataset: str, example: Example, answer_tokens: int) -> Decimal:
        cost = ZERO
        for evaluator in self._plan.datasets[dataset].evaluators:
            most_usd = optional_method(evaluator, "most_usd")
            if most_usd is not None:
                cost += most_usd(example, answer_tokens or _USUAL_ANSWER)
        return cost
