"""Settings of a judge, which are also the arguments of its constructor."""

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, InitVar, dataclass, field, fields
from typing import Any

from cbench_server.errors import InvalidInput
from cbench_server.limits import (
    MAX_JUDGE_REPEATS,
    MAX_JUDGE_RETRIES,
    MAX_JUDGE_TIMEOUT_S,
    MAX_MODEL_NAME,
    MIN_JUDGE_RPM,
)
from cbench_server.spec import PriceRef

_SHOWN_LAST = ("pack", "strip_thinking", "label", "prompts", "self_graded")


@dataclass(eq=False, repr=False)
class JudgeSettings:
    """What the judges share; each gives `model` and `pack` a default. The key is not kept here.

    Args:
        base_url: The root of an OpenAI-compatible endpoint; `/v1/chat/completions` is added.
        api_key: None means `OPENAI_API_KEY` from the environment, "" means no key.
        timeout: Seconds for one attempt.
        max_retries: Attempts after the first, for a request that was not answered. A reply without
            a verdict is asked about once more in any case.
        retry_base_delay: Seconds; doubled with every attempt, then jittered.
        pack: The prompt, by name.
        repeats: How often each pair is judged.
        rpm: Requests per minute, shared by all judges of this process that ask the same model
            as often.
        max_cost: US dollars; a call that might exceed them together with the others is not made.
        input_price: US dollars per million tokens of the prompt; None if nobody knows.
        output_price: US dollars per million tokens of the reply.
        cached_input_price: Of tokens of the prompt that the model had in its cache; None means
            as much as others.
        extra_body: Further keys of the request; one that is None is left out.
        label: Added to the names of the evaluator and its scores, to tell several judges apart.
        prompts: Whole prompts in place of the pack's own, by type of question; "" is the one
            for all others. They say with {question}, {answer} and {response} where those stand.
        self_graded: Whether the judge's model was not chosen apart from the one under test.
    """

    base_url: str
    model: str
    api_key: InitVar[str | None] = None
    timeout: float = 60.0
    max_retries: int = 3
    retry_base_delay: float = 1.0
    _: KW_ONLY
    pack: str
    repeats: int = 1
    rpm: float | None = None
    max_cost: float | None = None
    input_price: float | None = None
    output_price: float | None = None
    cached_input_price: float | None = None
    extra_body: Mapping[str, Any] | None = None
    strip_thinking: bool = True
    label: str = ""
    prompts: Mapping[str, str] | None = None
    self_graded: bool = False
    options: dict[str, Any] = field(init=False)
    """The arguments as they are recorded, without the key."""

    @property
    def price(self) -> PriceRef | None:
        """What the model charges, if that is known."""
        if self.input_price is None and self.output_price is None:
            return None
        return PriceRef(self.input_price or 0.0, self.output_price or 0.0, self.cached_input_price)

    def __post_init__(self, api_key: str | None) -> None:
        if not 1 <= self.repeats <= MAX_JUDGE_REPEATS:
            raise InvalidInput(
                f"repeats must be at least 1 and at most {MAX_JUDGE_REPEATS}, not {self.repeats}"
            )
        if self.rpm is not None and not self.rpm >= MIN_JUDGE_RPM:
            raise InvalidInput(f"rpm must be at least {MIN_JUDGE_RPM:g}, not {self.rpm}")
        if not 0 < self.timeout <= MAX_JUDGE_TIMEOUT_S:
            raise InvalidInput(
                f"timeout must be more than zero and at most {MAX_JUDGE_TIMEOUT_S:g} s, not "
                f"{self.timeout}"
            )
        for name, text in (("model", self.model), ("base_url", self.base_url)):
            if len(str(text)) > MAX_MODEL_NAME:
                raise InvalidInput(
                    f"{name} has at most {MAX_MODEL_NAME:,} characters, not {len(str(text)):,}"
                )
        cached = self.cached_input_price
        if cached is not None and not (math.isfinite(cached) and cached >= 0):
            raise InvalidInput(f"cached_input_price must be a number from 0 on, not {cached}")
        if not 0 <= self.max_retries <= MAX_JUDGE_RETRIES:
            raise InvalidInput(
                f"max_retries must be at least 0 and at most {MAX_JUDGE_RETRIES}, not "
                f"{self.max_retries}"
            )
        names = [each.name for each in fields(JudgeSettings) if each.init]
        names = [name for name in names if name not in _SHOWN_LAST]
        self.options = {name: getattr(self, name) for name in (*names, *_SHOWN_LAST)}
        self.options["extra_body"] = dict(self.extra_body or {})
        self.options["prompts"] = dict(self.prompts or {})
