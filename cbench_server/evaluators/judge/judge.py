"""Judge: asks a model for its verdict, as often as wanted, until it gives one."""

import asyncio
import json
import os
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Generic, TypeVar

from cbench_server.errors import CallFailed, ComponentAway
from cbench_server.evaluators.inputs import strip_thinking
from cbench_server.evaluators.judge.limits import Budget, counts_of, level_of, pace_of
from cbench_server.evaluators.judge.packs import JudgePack
from cbench_server.evaluators.judge.prompt import Prompt
from cbench_server.evaluators.judge.settings import JudgeSettings
from cbench_server.evaluators.judge.shared_clients import shared_client
from cbench_server.models.account import ACCOUNT, Account
from cbench_server.models.chat import ChatClient, ChatFailed, ModelAway, pause
from cbench_server.models.chat_answer import OVERFLOW, ChatReply, add_usage
from cbench_server.models.messages import Message
from cbench_server.models.price import PROMPT_MARGIN, ZERO, cost_of, most_of, tokens_used
from cbench_server.scoring.assessment import GaveUp, Overflowed
from cbench_server.tokens import count_tokens

V = TypeVar("V")

_EXCERPT = 200
_QUOTED = 2000
# A model that thinks first needs more room than the verdict itself.
_MORE_TOKENS = 8
_LIMITS = ("max_tokens", "max_completion_tokens")
_OVERLOAD = ("RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED")


class NoVerdict(GaveUp):
    """The judge answered twice, and gave no verdict."""

    reason = "NO_VERDICT"

    def __init__(self, message: str, reply: ChatReply) -> None:
        super().__init__(message)
        self.reply = reply


@dataclass
class Effort:
    """What it took to get verdicts."""

    requests: int = 0
    retries: int = 0
    """Requests made because another one was not answered."""
    abandoned: int = 0
    """Requests that were given up at their deadline, and may still be at work."""
    asked_again: int = 0
    """Replies without a verdict."""
    prompts_cut: int = 0
    """Requests of which the model read far less than was sent, by its own count."""
    seconds: float = 0.0
    """From request to reply, without waiting for a turn."""
    usage: dict[str, Any] = field(default_factory=dict)

    def add(self, other: "Effort") -> None:
        """Add what another verdict took."""
        self.requests += other.requests
        self.retries += other.retries
        self.abandoned += other.abandoned
        self.asked_again += other.asked_again
        self.prompts_cut += other.prompts_cut
        self.seconds += other.seconds
        self.usage = add_usage(self.usage, other.usage)

    def take(self, details: Mapping[str, Any]) -> None:
        """Add what a verdict took, as its details tell."""
        self.requests += int(details.get("requests") or 0)
        self.retries += int(details.get("retries") or 0)
        self.abandoned += int(details.get("abandoned") or 0)
        self.asked_again += int(details.get("asked_again") or 0)
        self.prompts_cut += int(details.get("prompts_cut") or 0)
        self.seconds += float(details.get("seconds") or 0.0)
        self.usage = add_usage(self.usage, details.get("usage") or {})

    def describe(self) -> dict[str, Any]:
        """Return what is kept with a row; what did not happen is left out."""
        counts = {
            "requests": self.requests,
            "retries": self.retries,
            "abandoned": self.abandoned,
            "asked_again": self.asked_again,
            "prompts_cut": self.prompts_cut,
        }
        kept: dict[str, Any] = {name: count for name, count in counts.items() if count}
        if self.usage:
            kept["usage"] = self.usage
        return {**kept, "seconds": round(self.seconds, 6)}


ROW_EFFORT: ContextVar[Effort] = ContextVar("effort of a row")
"""What the row that is judged has taken so far, verdict or none."""


@dataclass(frozen=True)
class Opinion(Generic[V]):
    """What a model said, once or several times."""

    verdicts: Sequence[V]
    replies: Sequence[ChatReply]
    prompt: Prompt
    effort: Effort

    @property
    def agreement(self) -> float:
        """The share of calls that gave the most frequent verdict."""
        return max(map(self.verdicts.count, self.verdicts)) / len(self.verdicts)


class Judge:
    """One model with one pack; may be used from several event loops."""

    def __init__(self, settings: JudgeSettings, api_key: str | None, pack: JudgePack) -> None:
        self.settings = settings
        self.pack = pack
        self.payer = "judge"
        """By which name its costs go; the evaluator gives it its own."""
        self._budget = Budget(settings.max_cost, settings.input_price, settings.output_price)
        root = settings.base_url.rstrip("/")
        self._pace = pace_of(root, settings.model, settings.rpm)
        self._level = level_of(root, settings.model)
        self._counts = counts_of(root, settings.model)
        body = {"temperature": 0, "max_tokens": pack.max_tokens, **(settings.extra_body or {})}
        self.body = {name: value for name, value in body.items() if value is not None}
        self._key = os.environ.get("OPENAI_API_KEY") if api_key is None else api_key
        # Made now, so that a bad address is refused before anything is asked.
        self._client(self.body)

    def _client(self, body: Mapping[str, Any]) -> ChatClient:
        settings = self.settings
        return shared_client(
            settings.base_url, settings.model, self._key, settings.timeout, json.dumps(dict(body))
        )

    async def ask(self, prompt: Prompt, parse: Callable[[str], V | None]) -> Opinion[V]:
        """Return what the model holds; raise GaveUp if it cannot be had."""
        efforts = [Effort() for _ in range(self.settings.repeats)]
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(self._verdict(prompt, parse, effort)) for effort in efforts
                ]
        except ExceptionGroup as failed:
            error = failed.exceptions[0]
            if isinstance(error, NoVerdict):
                nothing: Opinion[V] = Opinion([], [error.reply], prompt, _sum(efforts))
                error.details = self.describe(nothing)
            raise error from None
        finally:
            ROW_EFFORT.get().add(_sum(efforts))
        answers = [task.result() for task in tasks]
        return Opinion(
            [verdict for verdict, _ in answers],
            [reply for _, reply in answers],
            prompt,
            _sum(efforts),
        )

    async def probe(self) -> None:
        """Make sure that the model's server is there; raise ChatFailed if not."""
        await self._client(self.body).probe()

    async def close_connections(self) -> None:
        """Close the connections of the running loop; a later call opens new ones."""
        for body in (self.body, self._roomier()):
            await self._client(body).close_connections()

    def describe(self, *opinions: Opinion[V]) -> dict[str, Any]:
        """Return the details every judge keeps, so that a row can be judged anew or looked into."""
        opinion = opinions[0]
        replies = [reply for each in opinions for reply in each.replies]
        details: dict[str, Any] = {
            "reply": replies[0].content,
            "model": self.settings.model,
            "pack": self.pack.name,
            "pack_digest": self.pack.digest,
            "prompt": opinion.prompt.text,
            "prompt_digest": opinion.prompt.digest,
            "request": dict(self.body),
        }
        served = {reply.model for reply in replies} - {"", self.settings.model}
        if served:
            details["served_model"] = ", ".join(sorted(served))
        if len(replies) > 1:
            details["replies"] = [reply.content for reply in replies]
        if len(opinions) > 1:
            details["prompts"] = [each.prompt.text for each in opinions]
            details["prompt_digests"] = [each.prompt.digest for each in opinions]
        if len(opinion.verdicts) > 1:
            details["verdicts"] = [verdict for each in opinions for verdict in each.verdicts]
            details["agreement"] = min(each.agreement for each in opinions)
        return details | self.spent(_sum(each.effort for each in opinions))

    def spent(self, effort: Effort) -> dict[str, Any]:
        """Return the details that tell what verdicts took."""
        price = self.settings.price
        cost = None if price is None else cost_of(price, effort.usage)
        told = {} if cost is None else {"cost_usd": float(cost)}
        return {**told, **effort.describe()}

    async def _verdict(
        self, prompt: Prompt, parse: Callable[[str], V | None], effort: Effort
    ) -> tuple[V, ChatReply]:
        messages = prompt.chat()
        reply = await self._answer(messages, self.body, effort)
        verdict = parse(strip_thinking(reply.content))
        if verdict is None:
            # The same request again would get the same reply.
            effort.asked_again += 1
            said = reply.content[:_QUOTED]
            if said.strip():
                messages.append({"role": "assistant", "content": said})
                messages.append({"role": "user", "content": self.pack.reminder})
            else:
                # Chat templates want the roles to alternate.
                messages = prompt.chat(f"Answer at once. {self.pack.reminder}")
            is_cut = reply.finish_reason == "length" or not said.strip()
            reply = await self._answer(messages, self._roomier() if is_cut else self.body, effort)
            verdict = parse(strip_thinking(reply.content))
        if verdict is None:
            words = " ".join(reply.content.split())[:_EXCERPT]
            raise NoVerdict(
                f'the judge {self.settings.model}, asked twice, gave no verdict but "{words}"',
                reply,
            )
        return verdict, reply

    def _roomier(self) -> dict[str, Any]:
        limits = {
            name: limit * _MORE_TOKENS
            for name in _LIMITS
            if isinstance(limit := self.body.get(name), int)
        }
        return {**self.body, **limits}

    async def _answer(
        self, messages: Sequence[Message], body: Mapping[str, Any], effort: Effort
    ) -> ChatReply:
        """Return a reply, asking again where there was none; raise GaveUp."""
        attempt = 0
        while True:
            attempt += 1
            effort.requests += 1
            effort.retries += attempt > 1
            try:
                return await self._call(messages, body, effort)
            except ChatFailed as error:
                effort.abandoned += error.failure.reason == "DEADLINE_EXCEEDED"
                await self._wait(error, attempt)

    async def _call(
        self, messages: Sequence[Message], body: Mapping[str, Any], effort: Effort
    ) -> ChatReply:
        if self.settings.rpm is not None:
            await self._pace.wait(self.settings.rpm)
        turn = await self._level.take()
        overloaded, failed = False, True
        try:
            started = time.perf_counter()
            reply = await self._paid(messages, body)
            effort.seconds += time.perf_counter() - started
            effort.usage = add_usage(effort.usage, _with_cached(reply.usage or {}))
            failed = False
        except ChatFailed as error:
            overloaded = error.failure.reason in _OVERLOAD
            raise
        finally:
            self._level.give_back(turn, overloaded=overloaded, failed=failed)
        effort.prompts_cut += await self._is_cut(messages, reply)
        return reply

    async def _is_cut(self, messages: Sequence[Message], reply: ChatReply) -> bool:
        reported = (reply.usage or {}).get("prompt_tokens")
        if reported is None:
            return False
        text = _text_of(messages)
        sent = await asyncio.to_thread(count_tokens, text)
        return self._counts.is_cut(text, sent, reported)

    async def _paid(self, messages: Sequence[Message], body: Mapping[str, Any]) -> ChatReply:
        """Make one request within the budgets of the judge and of the run."""
        most = 0.0
        limit = answer_limit(body) or self.pack.max_tokens
        if self._budget.cap is not None:
            most = self._budget.cost(count_tokens(_text_of(messages)), limit)
        self._budget.reserve(most)
        spent = 0.0
        try:
            reply = await self._on_account(messages, body, limit)
            used = tokens_used(reply.usage)
            spent = most if used is None else self._budget.cost(*used)
        finally:
            self._budget.settle(most, spent)
        return reply

    async def _on_account(
        self, messages: Sequence[Message], body: Mapping[str, Any], limit: int
    ) -> ChatReply:
        """Make one request, which the row that is judged pays for."""
        account = ACCOUNT.get() or Account()
        try:
            payment = await account.open(self.payer, self.settings.price, messages, limit)
        except CallFailed as error:
            raise GaveUp(str(error)) from None
        try:
            reply = await self._client(body).complete(messages)
            payment.answered(reply.usage)
        except ChatFailed as error:
            if error.is_free:
                payment.refused()
            elif error.usage is not None:
                payment.answered(error.usage)
            raise
        finally:
            payment.lost()
        return reply

    def most_usd(self, prompt_tokens: int, verdicts: int) -> Decimal:
        """Return what verdicts may cost, as long as none has to be asked for again."""
        price = self.settings.price
        if price is None:
            return ZERO
        once = most_of(price, prompt_tokens, answer_limit(self.body), PROMPT_MARGIN)
        return once * verdicts * self.settings.repeats

    async def _wait(self, error: ChatFailed, attempt: int) -> None:
        """Wait before the next attempt, or raise GaveUp."""
        settings = self.settings
        wait = None
        if error.failure.retryable and attempt <= settings.max_retries:
            wait = pause(attempt, settings.retry_base_delay, random.random(), error.retry_delay)
        if wait is None:
            times = f" (attempt {attempt})" if attempt > 1 else ""
            message = f"the judge gave no answer{times}: {error}"
            if isinstance(error, ModelAway):
                raise ComponentAway(message, was_asked=error.was_asked)
            is_overflow = error.failure.reason == OVERFLOW
            raise (Overflowed if is_overflow else GaveUp)(message) from None
        await asyncio.sleep(wait)


def _sum(efforts: Iterable[Effort]) -> Effort:
    whole = Effort()
    for effort in efforts:
        whole.add(effort)
    return whole


def _text_of(messages: Sequence[Message]) -> str:
    return "\n".join(str(message["content"]) for message in messages)


def answer_limit(body: Mapping[str, Any]) -> int:
    """Return how many tokens a reply may take; 0 if nothing limits it."""
    limits = [body[name] for name in _LIMITS if isinstance(body.get(name), int)]
    return min(limits, default=0)


def _with_cached(usage: Mapping[str, Any]) -> dict[str, Any]:
    """Return usage with the cached tokens of the prompt where the daemon looks for them."""
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else None
    return {**usage, "cached_prompt_tokens": cached} if isinstance(cached, int) else dict(usage)
