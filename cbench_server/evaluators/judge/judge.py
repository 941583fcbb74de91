"""Judge: asks a model for its verdict, as often as wanted, until it gives one."""

import asyncio
import functools
import json
import os
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from cbench_server.evaluators.inputs import strip_thinking
from cbench_server.evaluators.judge.limits import Budget, pace_of, tokens_used
from cbench_server.evaluators.judge.packs import JudgePack
from cbench_server.evaluators.judge.prompt import Section, build_prompt
from cbench_server.evaluators.judge.settings import JudgeSettings
from cbench_server.models.chat import ChatClient, ChatFailed, pause
from cbench_server.models.chat_answer import ChatReply, add_usage
from cbench_server.scoring.assessment import GaveUp
from cbench_server.tokens import count_tokens

V = TypeVar("V", bound=float)

_EXCERPT = 200


class Judge(Generic[V]):
    """One model with one pack; may be used from several event loops."""

    def __init__(
        self,
        settings: JudgeSettings,
        api_key: str | None,
        pack: JudgePack,
        parse: Callable[[str], V | None],
    ) -> None:
        self.settings = settings
        self.pack = pack
        self._parse = parse
        self._budget = Budget(settings.max_cost, settings.input_price, settings.output_price)
        self._pace = pace_of(settings.base_url.rstrip("/"), settings.model)
        body = {"temperature": 0, "max_tokens": pack.max_tokens, **(settings.extra_body or {})}
        self._body = {name: value for name, value in body.items() if value is not None}
        key = os.environ.get("OPENAI_API_KEY") if api_key is None else api_key
        self._client = _shared_client(
            settings.base_url, settings.model, key, settings.timeout, json.dumps(self._body)
        )

    async def ask(self, sections: Sequence[Section]) -> "Opinion[V]":
        """Return what the model holds; raise GaveUp if it cannot be had."""
        prompt = build_prompt(self.pack, sections)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(self._ask_once(prompt)) for _ in range(self.settings.repeats)
                ]
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
        answers = [task.result() for task in tasks]
        usage: dict[str, Any] = {}
        for _, reply in answers:
            usage = add_usage(usage, reply.usage or {})
        return Opinion(
            [verdict for verdict, _ in answers], [reply.content for _, reply in answers], usage
        )

    async def close_connections(self) -> None:
        """Close the connections of the running loop; a later call opens new ones."""
        await self._client.close_connections()

    def describe(self, opinion: "Opinion[V]") -> dict[str, Any]:
        """Return the details every judge keeps."""
        details: dict[str, Any] = {
            "reply": opinion.replies[0],
            "model": self.settings.model,
            "pack": self.pack.name,
            "pack_digest": self.pack.digest,
        }
        if len(opinion.verdicts) > 1:
            details["replies"] = opinion.replies
            details["verdicts"] = list(opinion.verdicts)
            details["agreement"] = opinion.agreement
        if opinion.usage:
            details["usage"] = opinion.usage
        return details

    async def _ask_once(self, prompt: str) -> tuple[V, ChatReply]:
        last_attempt = self.settings.max_retries + 1
        said = ""
        for attempt in range(1, last_attempt + 1):
            try:
                reply = await self._call(prompt)
            except ChatFailed as error:
                await self._wait(error, attempt)
                continue
            verdict = self._parse(strip_thinking(reply.content))
            if verdict is not None:
                return verdict, reply
            said = " ".join(reply.content.split())[:_EXCERPT]
        times = f", asked {last_attempt} times," if last_attempt > 1 else ""
        raise GaveUp(f'the judge {self.settings.model}{times} gave no verdict but "{said}"')

    async def _call(self, prompt: str) -> ChatReply:
        if self.settings.rpm is not None:
            await self._pace.wait(self.settings.rpm)
        most = 0.0
        if self._budget.cap is not None:
            limit = self._body.get("max_tokens")
            output_tokens = limit if isinstance(limit, int) else self.pack.max_tokens
            most = self._budget.cost(count_tokens(prompt), output_tokens)
        self._budget.reserve(most)
        spent = 0.0
        try:
            reply = await self._client.complete([{"role": "user", "content": prompt}])
            used = tokens_used(reply.usage)
            spent = most if used is None else self._budget.cost(*used)
        finally:
            self._budget.settle(most, spent)
        return reply

    async def _wait(self, error: ChatFailed, attempt: int) -> None:
        """Wait before the next attempt, or raise GaveUp."""
        settings = self.settings
        wait = None
        if error.failure.retryable and attempt <= settings.max_retries:
            wait = pause(attempt, settings.retry_base_delay, random.random(), error.retry_delay)
        if wait is None:
            times = f" (attempt {attempt})" if attempt > 1 else ""
            raise GaveUp(f"the judge gave no answer{times}: {error}") from None
        await asyncio.sleep(wait)


@dataclass(frozen=True)
class Opinion(Generic[V]):
    """What a model said, once or several times."""

    verdicts: Sequence[V]
    replies: Sequence[str]
    usage: Mapping[str, Any]

    @property
    def agreement(self) -> float:
        """The share of calls that gave the most frequent verdict."""
        return max(map(self.verdicts.count, self.verdicts)) / len(self.verdicts)


@functools.lru_cache(maxsize=32)
def _shared_client(
    base_url: str, model: str, key: str | None, timeout: float, body: str
) -> ChatClient:
    """Make a client that equal judges share, since a daemon makes a judge for every pair it scores.

    It does not retry by itself: every attempt has to wait for its turn.
    """
    return ChatClient(
        base_url,
        model,
        api_key=key,
        timeout=timeout,
        max_retries=0,
        extra_body=json.loads(body),
    )
