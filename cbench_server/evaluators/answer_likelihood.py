"""Answer likelihood: how likely the reference is to a model that reads what a system left.

Nothing is sampled. The same question is asked about three times: with what the system left, with
the whole context and with none. The last two do not depend on the system, so they are asked once.
"""

import asyncio
import os
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, field
from hashlib import sha256
from typing import Any, ClassVar

from cbench_server.datasets.prompts.library import prompt_for
from cbench_server.datasets.prompts.prompt import Asking
from cbench_server.datasets.record import DEFAULT_REFERENCE_FIELDS
from cbench_server.errors import ComponentAway, InvalidInput
from cbench_server.evaluators.inputs import ScoreInfo, references
from cbench_server.limits import MAX_JUDGE_TIMEOUT_S
from cbench_server.models.blocking import run_blocking
from cbench_server.models.chat import ChatFailed, ModelAway
from cbench_server.models.chat_answer import OVERFLOW
from cbench_server.models.likelihood import APIS, Api, Likelihood, Scorer, TokenClient, scorer_for
from cbench_server.models.messages import Message
from cbench_server.scoring.assessment import GaveUp, Overflowed
from cbench_server.types import Assessment, Example, Placement, Scores

LOGLIK, GAIN, ROOM = "answer_loglik", "answer_gain", "answer_room"
_REMEMBERED = 20_000
_PROBE: Sequence[Message] = ({"role": "user", "content": "Say yes."},)


@dataclass(eq=False, repr=False)
class AnswerLikelihood:
    """Gives `answer_loglik`, `answer_gain` and `answer_room`, in nats for each token.

    The gain is what the system's context adds to the likelihood of the
    reference, compared with no context at all; the room is what the whole context adds.
    Of several references the first counts, on every arm: whatever picks one by what the model
    says favours the arm that it asks.

    Args:
        base_url: The root of the model's server: llama.cpp, vLLM, or one whose `/v1/completions`
            takes `echo` and `logprobs`.
        model: Its model; llama.cpp needs none.
        api_key: None means `OPENAI_API_KEY` from the environment, "" means no key.
        api: What the server is: `llama.cpp`, `vllm`, `echo`, or `auto` to find out.
        timeout: Seconds for one request.
        max_concurrency: Requests in flight; None means as many as the server has slots.
        max_answer_tokens: How much of a long reference is scored.
    """

    name = "answer-likelihood"
    description = "How likely the reference is to a model, given what a system left."
    version = "2"
    placement: ClassVar[Placement] = "io"
    asks_model = True
    # Each request has its timeout; waiting for a turn is not a failure, however long.
    patience = None
    reads = "context"
    score_infos: ClassVar[tuple[ScoreInfo, ...]] = (
        ScoreInfo(LOGLIK, "Mean log-probability of the reference's tokens, in nats."),
        ScoreInfo(GAIN, "By how much that is above the same without any context."),
        ScoreInfo(ROOM, "By how much it is above that with the whole context."),
    )

    base_url: str
    model: str = ""
    api_key: InitVar[str | None] = None
    _: KW_ONLY
    api: Api = "auto"
    timeout: float = 300.0
    max_concurrency: int | None = None
    max_answer_tokens: int = 256
    options: dict[str, Any] = field(init=False)

    def __post_init__(self, api_key: str | None) -> None:
        if self.api not in APIS:
            raise InvalidInput(f'api must be one of {", ".join(APIS)}, not "{self.api}"')
        if not 0 < self.timeout <= MAX_JUDGE_TIMEOUT_S:
            raise InvalidInput(
                f"timeout must be more than zero and at most {MAX_JUDGE_TIMEOUT_S:g} s, not "
                f"{self.timeout}"
            )
        for name in ("max_concurrency", "max_answer_tokens"):
            value = vars(self)[name]
            if value is not None and (type(value) is not int or value < 1):
                raise InvalidInput(f"{name} must be at least 1, not {value}")
        names = ("base_url", "model", "api", "timeout", "max_concurrency", "max_answer_tokens")
        self.options = {name: vars(self)[name] for name in names}
        key = os.environ.get("OPENAI_API_KEY") if api_key is None else api_key
        self._client = TokenClient(self.base_url, self.model, api_key=key, timeout=self.timeout)
        self._scorers: dict[asyncio.AbstractEventLoop, asyncio.Task[_Turns]] = {}
        self._known: OrderedDict[str, Likelihood] = OrderedDict()
        self._asked: dict[tuple[int, str], asyncio.Task[Likelihood]] = {}

    def applies(self, original: Example) -> bool:
        """Whether there is a context to take something from, and a reference to look for."""
        context = original.get("context")
        return isinstance(context, str) and bool(context.strip()) and bool(references(original))

    def score(self, original: Example, processed: Example) -> Scores:
        """Do as `assess` does, and wait."""
        return run_blocking(self.assess(original, processed)).scores

    async def assess(self, original: Example, processed: Example) -> Assessment:
        """Ask the model; raises GaveUp where it does not tell."""
        left = processed.get("context")
        if not self.applies(original) or not isinstance(left, str):
            return Assessment({})
        asking = _asking(original)
        shown = {name: original[name] for name in original if name not in DEFAULT_REFERENCE_FIELDS}
        changed = asking.prompt.compressible
        answer = references(original)[0].strip()
        try:
            ceiling = await self._likelihood(asking.messages(shown), answer)
            floor = await self._likelihood(asking.messages(shown, {changed: ""}), answer)
            found = await self._likelihood(asking.messages(shown, {changed: left}), answer)
        except ModelAway as error:
            raise ComponentAway(str(error), was_asked=error.was_asked) from error
        except ChatFailed as error:
            is_overflow = error.failure.reason == OVERFLOW
            message = f"the model did not tell how likely the answer is: {error}"
            raise (Overflowed if is_overflow else GaveUp)(message) from None
        scores = {
            LOGLIK: found.per_token,
            GAIN: found.per_token - floor.per_token,
            ROOM: ceiling.per_token - floor.per_token,
        }
        return Assessment(scores, self._details(answer, found, floor, ceiling))

    def _details(
        self, answer: str, found: Likelihood, floor: Likelihood, ceiling: Likelihood
    ) -> dict[str, Any]:
        details: dict[str, Any] = {
            "reference": answer,
            "tokens": found.tokens,
            "log_probability": found.log_probability,
            "log_probability_no_context": floor.log_probability,
            "log_probability_whole_context": ceiling.log_probability,
            "model": self.model,
        }
        return {**details, "reference_cut": True} if found.is_cut else details

    async def _likelihood(self, messages: Sequence[Message], answer: str) -> Likelihood:
        """Ask once for the same, whoever wants to know it."""
        key = sha256(repr(([*messages], answer)).encode()).hexdigest()
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key]
        asked = (id(asyncio.get_running_loop()), key)
        if asked not in self._asked:
            task = asyncio.ensure_future(self._ask(messages, answer))
            self._asked[asked] = task
            task.add_done_callback(lambda _: self._asked.pop(asked, None))
        # Shielded: whoever else waits for it must not lose it with us.
        found = await asyncio.shield(self._asked[asked])
        self._known[key] = found
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return found

    async def _ask(self, messages: Sequence[Message], answer: str) -> Likelihood:
        turns = await self._turns()
        async with turns.free:
            return await turns.scorer.likelihood(messages, answer, self.max_answer_tokens)

    async def _turns(self) -> "_Turns":
        loop = asyncio.get_running_loop()
        task = self._scorers.get(loop)
        if task is None or (task.done() and (task.cancelled() or task.exception())):
            task = self._scorers[loop] = asyncio.ensure_future(self._find())
        return await asyncio.shield(task)

    async def _find(self) -> "_Turns":
        scorer = await scorer_for(self._client, self.api)
        return _Turns(scorer, asyncio.Semaphore(self.max_concurrency or scorer.width))

    async def probe(self) -> None:
        """Make sure that the server tells likelihoods; raise ChatFailed if not."""
        turns = await self._turns()
        await turns.scorer.likelihood(_PROBE, "yes", 1)

    async def close_connections(self) -> None:
        """Close the connections of the running loop; a later call opens new ones."""
        self._scorers.pop(asyncio.get_running_loop(), None)
        await self._client.close_connections()


@dataclass(frozen=True)
class _Turns:
    """A server, and how many may ask it at once."""

    scorer: Scorer
    free: asyncio.Semaphore


def _asking(original: Example) -> Asking:
    """Return the prompt of the example's dataset, in our own words."""
    name, _, config = str(original.get("dataset") or "").partition(":")
    return Asking(prompt_for(name, config))
