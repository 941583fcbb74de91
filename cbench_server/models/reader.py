"""The reader: one model that answers for systems which only change a context."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cbench_server.errors import CallFailed, ComponentAway, EvaluatorBroken
from cbench_server.models.account import Account
from cbench_server.models.chat import ModelAway, pause
from cbench_server.models.level import Level
from cbench_server.models.messages import Message
from cbench_server.models.model import Model, Said, is_cut
from cbench_server.models.prompt_counts import PromptCounts
from cbench_server.results import ANSWER_CUT, PROMPT_CUT, Failure
from cbench_server.types import Example

_OVERLOADED = frozenset({"RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED"})
_FIRST_PAUSE_S = 0.25


Through = Callable[[str, Callable[[], Awaitable[Said]]], Awaitable[Said]]


class Reader:
    """Answers from contexts that systems left, for all systems of a run, at a pace it can take.

    `level` says how many requests are in flight. A request that failed for a
    passing reason is repeated while its time lasts; one that came too late
    while others were in flight is repeated once.
    """

    def __init__(
        self, model: Model, level: Level | None = None, timeout: float | None = None
    ) -> None:
        """`timeout` is the most seconds for one request; None for the time of a row."""
        self.model = model
        self._level = level or Level()
        self._timeout = timeout
        self._counts = PromptCounts()
        self.through: Through | None = None
        """Waits for a model that is away; without it requests fail when their time is up."""

    @staticmethod
    def is_needed(processed: Example) -> bool:
        """Whether a system left answering to others."""
        return "response" not in processed and isinstance(processed.get("context"), str)

    async def read(
        self,
        messages: Sequence[Message],
        settings: Mapping[str, Any],
        timeout: float,
        sent_tokens: int | None = None,
        account: Account | None = None,
    ) -> Said:
        """Return the answer; raise CallFailed with the reader to blame.

        Every request is paid for by the `account`.
        """
        if self.through is None:
            return await self._read(messages, settings, timeout, sent_tokens, account)

        async def ask() -> Said:
            try:
                return await self._read(messages, settings, timeout, sent_tokens, account)
            except ModelAway as error:
                raise ComponentAway(str(error), was_asked=error.was_asked) from error

        try:
            return await self.through("the reader", ask)
        except EvaluatorBroken as error:
            failure = Failure("reader", "UNAVAILABLE", str(error), attempts=2)
            raise CallFailed(failure) from error

    async def _read(
        self,
        messages: Sequence[Message],
        settings: Mapping[str, Any],
        timeout: float,
        sent_tokens: int | None,
        account: Account | None,
    ) -> Said:
        requests = abandoned = 0
        timeout = self._timeout or timeout
        patience = timeout
        while True:
            turn = await self._level.take()
            requests += 1
            is_crowded = self._level.in_flight > 1
            try:
                reply, seconds = await self.model.ask(messages, settings, timeout, account)
            except CallFailed as error:
                failure = replace(error.failure, attempts=requests)
                is_late = failure.reason == "DEADLINE_EXCEEDED"
                self._level.give_back(turn, overloaded=failure.reason in _OVERLOADED, failed=True)
                abandoned += is_late
                if is_late:
                    wait = 0.0 if is_crowded and abandoned == 1 else None
                else:
                    wait = self._wait(error, requests)
                    if self.through is not None and isinstance(error, ModelAway):
                        raise
                if wait is None or (patience := patience - wait) <= 0:
                    raise CallFailed(failure) from error
            except BaseException:
                self._level.give_back(turn, failed=True)
                raise
            else:
                self._level.give_back(turn)
                break
            await asyncio.sleep(wait)
        usage: dict[str, Any] = {**(reply.usage or {}), "requests": requests}
        if abandoned:
            usage["abandoned_requests"] = abandoned
        reported = (reply.usage or {}).get("prompt_tokens")
        # Its own count has its own vocabulary, and what its template adds.
        most = max(filter(None, (sent_tokens, reported)), default=None)
        marks = [*self.model.marks_of_size(most, settings)]
        text = "\n".join(message["content"] for message in messages)
        if sent_tokens is not None and self._counts.is_cut(text, sent_tokens, reported):
            marks.append(PROMPT_CUT)
        if is_cut(reply):
            marks.append(ANSWER_CUT)
        return Said(reply.content, seconds, usage, reply.finish_reason, tuple(marks), requests)

    def _wait(self, error: CallFailed, requests: int) -> float | None:
        if not error.failure.retryable:
            return None
        return pause(requests, _FIRST_PAUSE_S, 1.0, error.retry_delay)

    async def close(self) -> None:
        """Close its connections."""
        await self.model.close()
