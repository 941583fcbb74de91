"""A model as readers and proxies ask it: its settings, its window, and its answers' marks."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cbench_server.errors import CallFailed
from cbench_server.models.account import Account
from cbench_server.models.chat import ChatClient, ChatFailed, ModelAway
from cbench_server.models.chat_answer import OVERFLOW, ChatReply
from cbench_server.models.messages import Message, opening
from cbench_server.results import PROMPT_CUT, PROMPT_OVER_WINDOW, Failure
from cbench_server.spec import ANSWER_LIMITS, PriceRef

_CUT = frozenset({"length", "max_tokens", "MAX_TOKENS", "model_length"})
_REFUSED = frozenset({"HTTP_400", "HTTP_422"})


@dataclass(frozen=True, slots=True)
class Said:
    """What a model said, and what it took."""

    content: str
    seconds: float
    """Of the request that was answered, without waiting for a turn and without other attempts."""
    usage: dict[str, Any]
    """As reported, with `requests` and, where some were given up, `abandoned_requests`."""
    finish_reason: str = ""
    marks: tuple[str, ...] = ()
    requests: int = 1


class Model:
    """One model behind one endpoint, with the settings that a run gives it.

    Args:
        client: Makes one attempt per request; whoever asks decides on others.
        origin: Whom to blame for a failure: `reader`, or `system` for a model under test.
        context_window: How many tokens fit into it, prompt and answer together.
        price: What it charges; None if nobody knows.
    """

    def __init__(
        self,
        client: ChatClient,
        *,
        origin: str,
        system_prompt: str = "",
        context_window: int | None = None,
        price: PriceRef | None = None,
    ) -> None:
        self.client = client
        self.origin = origin
        self.context_window = context_window
        self.price = price
        self._system_prompt = system_prompt

    def settings(self, max_tokens: int | None, stop: Sequence[str]) -> dict[str, Any]:
        """Return the keys of a request: repeatable and bounded, unless the run says otherwise."""
        settings: dict[str, Any] = {"temperature": 0}
        if max_tokens is not None and not any(
            name in self.client.extra_body for name in ANSWER_LIMITS
        ):
            settings["max_tokens"] = max_tokens
        if stop:
            settings["stop"] = list(stop)
        return settings

    def answer_limit(self, settings: Mapping[str, Any]) -> int:
        """Return how many tokens an answer may take; 0 if nobody limits it."""
        sent = {**settings, **self.client.extra_body}
        return next((sent[name] for name in ANSWER_LIMITS if isinstance(sent.get(name), int)), 0)

    def marks_of_size(
        self, prompt_tokens: int | None, settings: Mapping[str, Any]
    ) -> tuple[str, ...]:
        """Return what the size of a prompt tells."""
        if self.context_window is None or prompt_tokens is None:
            return ()
        whole = prompt_tokens + self.answer_limit(settings)
        return (PROMPT_OVER_WINDOW,) if whole > self.context_window else ()

    def whole(self, messages: Sequence[Message]) -> list[Message]:
        """Return messages as they are sent, with the system prompt."""
        if self._system_prompt and not any(each.get("role") == "system" for each in messages):
            return [*opening(self._system_prompt), *messages]
        return list(messages)

    async def ask(
        self,
        messages: Sequence[Message],
        settings: Mapping[str, Any],
        timeout: float,
        account: Account | None = None,
    ) -> tuple[ChatReply, float]:
        """Make one request; return the reply and its seconds, or raise CallFailed.

        What it costs goes on the `account`, whose budget may refuse it.
        """
        whole = self.whole(messages)
        limit = self.answer_limit(settings)
        payment = await (account or Account()).open(self.origin, self.price, whole, limit)
        started = time.perf_counter()
        try:
            reply = await self.client.complete(whole, settings, timeout)
            seconds = time.perf_counter() - started
            payment.answered(reply.usage)
        except ChatFailed as error:
            if error.failure.reason == "DEADLINE_EXCEEDED" and timeout <= self.client.timeout:
                message = f"the {self._word} did not answer within {timeout:g}s"
                raise CallFailed(Failure(self.origin, "DEADLINE_EXCEEDED", message)) from None
            if error.is_free:
                payment.refused()
            elif error.usage is not None:
                payment.answered(error.usage)
            failure = replace(error.failure, origin=self.origin)
            if isinstance(error, ModelAway):
                away = ModelAway(failure, error.retry_delay)
                away.was_asked = error.was_asked
                raise away from None
            raise CallFailed(_explained(failure, settings), error.retry_delay) from None
        finally:
            payment.lost()
        return reply, seconds

    @property
    def _word(self) -> str:
        return "reader" if self.origin == "reader" else "model"

    async def close(self) -> None:
        """Close its connections."""
        await self.client.close_connections()


def is_cut(reply: ChatReply) -> bool:
    """Whether an answer ended because it was long enough."""
    return reply.finish_reason in _CUT


def marks_of_failure(failure: Failure) -> tuple[str, ...]:
    """Return what a row without an answer is marked with."""
    return (PROMPT_CUT,) if failure.reason == OVERFLOW else ()


def _explained(failure: Failure, settings: Mapping[str, Any]) -> Failure:
    """Say how to leave out a setting of ours that a model refuses."""
    named = [name for name in settings if failure.reason in _REFUSED and name in failure.message]
    if not named:
        return failure
    flag = "--reader-option" if failure.origin == "reader" else "--option"
    hint = f" If it refuses {named[0]}, leave it out: {flag} {named[0]}=null"
    return replace(failure, message=failure.message + hint)
