"""Settings of a judge, which are also the arguments of its constructor."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, InitVar, dataclass, field, fields
from typing import Any

from cbench_server.errors import InvalidInput

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
        rpm: Requests per minute, shared by all judges of this process that ask the same model.
        max_cost: US dollars; a call that might exceed them together with the others is not made.
        input_price: US dollars per million tokens of the prompt.
        output_price: US dollars per million tokens of the reply.
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
    input_price: float = 0.0
    output_price: float = 0.0
    extra_body: Mapping[str, Any] | None = None
    strip_thinking: bool = True
    label: str = ""
    prompts: Mapping[str, str] | None = None
    self_graded: bool = False
    options: dict[str, Any] = field(init=False)
    """The arguments as they are recorded, without the key."""

    def __post_init__(self, api_key: str | None) -> None:
        if self.repeats < 1:
            raise InvalidInput(f"repeats must be at least 1, not {self.repeats}")
        if self.rpm is not None and not self.rpm > 0:
            raise InvalidInput(f"rpm must be more than zero, not {self.rpm}")
        if not self.timeout > 0:
            raise InvalidInput(f"timeout must be more than zero, not {self.timeout}")
        if self.max_retries < 0:
            raise InvalidInput(f"max_retries must be at least 0, not {self.max_retries}")
        names = [each.name for each in fields(JudgeSettings) if each.init]
        names = [name for name in names if name not in _SHOWN_LAST]
        self.options = {name: getattr(self, name) for name in (*names, *_SHOWN_LAST)}
        self.options["extra_body"] = dict(self.extra_body or {})
        self.options["prompts"] = dict(self.prompts or {})
