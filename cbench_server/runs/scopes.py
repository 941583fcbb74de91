"""Scopes of a memory system: each holds one conversation, whole or put in again.

A call that is lost on the way may mean that the system has come back without
its memory, and would answer from nothing; so may a connection that was made
again between two calls. So a conversation counts as whole only while neither
has happened since it was begun; otherwise it is ingested again, under a new
scope, before it is asked again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace

from cbench_server.datasets.withheld import Withheld
from cbench_server.errors import CallFailed
from cbench_server.results import Failure
from cbench_server.runs.digests import call_id
from cbench_server.runs.plan import Plan
from cbench_server.runs.retry import Retry
from cbench_server.runs.rows import Item, Talk
from cbench_server.runs.store import SpooledExample
from cbench_server.systems.caller import (
    Answer,
    Call,
    Caller,
    Ingest,
    Query,
    Reset,
    Turn,
    Work,
    call_one,
)

_Era = tuple[int, str]

_BATCH_CHARACTERS = 1_000_000
_MAX_TRIES = 8
_FORGET_SECONDS = 5.0
_GENERATIONS_FORGOTTEN = 8


@dataclass(slots=True, eq=False)
class Conversation(Talk):
    """A conversation with the questions still to be asked about it."""

    repeat: int = 0
    questions: list[Item] = field(default_factory=list)
    scopes: list[str] = field(default_factory=list)
    """Where it was put; only the last one is asked."""
    era: "_Era | None" = None
    """When it was put there; None until it is whole."""
    tries: int = 0
    """How often it was put somewhere since its last answer."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def size(self) -> int:
        """Bytes of text it holds, about."""
        return sum(len(turn["content"]) for turn in self.head.example["turns"])


class Scopes:
    """The scopes of one memory system."""

    def __init__(
        self,
        caller: Caller,
        retry: Retry,
        plan: Plan,
        *,
        is_single: bool,
        heard: Callable[[Work], None],
        clock: Callable[[], float],
    ) -> None:
        """`is_single` says that the system is called once at a time, so may have one state.

        `heard` is called with what a call was, whenever one has succeeded.
        """
        self._caller = caller
        self._name = caller.description.name
        self._retry = retry
        self._heard = heard
        self._clock = clock
        self._plan = plan
        self._is_single = is_single
        self._losses = 0
        self._held: dict[str, None] = {}
        """What a system with one state may not have forgotten: it was busy when it was told to."""

    def _era(self, conversation: Conversation) -> _Era:
        group = self._caller.replicas
        if group is None:
            return self._losses, self._caller.era
        return 0, group.homes.era_of(conversation.scopes[-1] if conversation.scopes else "")

    async def ingest(self, conversation: Conversation) -> None:
        """Feed a conversation into a fresh scope, until it is in without a call lost."""
        while conversation.era != self._era(conversation):
            if conversation.tries >= _MAX_TRIES:
                message = f'"{self._name}" went away {_MAX_TRIES} times with this conversation.'
                raise CallFailed(Failure("transport", "UNAVAILABLE", message))
            if self._is_single:
                # A system with one state takes no second scope beside the first. Elsewhere
                # the first may still be answering.
                await self.forget(conversation)
                await self._forget_held()
            name = self._scope(
                conversation.head.ordinal, conversation.repeat, self._plan.generation
            )
            scope = f"{name}.{len(conversation.scopes)}"
            conversation.scopes.append(scope)
            conversation.tries += 1
            conversation.ingest_time = 0.0
            conversation.ingested_alone = False
            await self._reset(Reset(scope))
            era = self._era(conversation)
            for number, turns in enumerate(self._batches(conversation.head)):
                answer, _ = await self._retry.call(
                    self._attempt(f"{scope}-t{number}", Ingest(scope, turns))
                )
                conversation.ingest_time += answer.latency
                if answer.recall is not None:
                    conversation.stored_bytes = answer.recall.stored_bytes
            conversation.era = era

    def _attempt(self, call_id: str, work: Work) -> Callable[[float], Awaitable[Answer]]:
        return lambda timeout: self._call(Call(call_id, work), timeout)

    async def query(self, conversation: Conversation, item: Item, budget: int | None) -> Answer:
        """Ask, with retries, and note the attempts it took on the item."""
        example = item.spooled.example

        async def attempt(timeout: float) -> Answer:
            if conversation.era != self._era(conversation):
                item.call_id = ""
                await self._ingest_again(conversation)
            scope = conversation.scopes[-1]
            item.call_id = f"{scope}-{item.spooled.ordinal}"
            item.work = Query(
                scope,
                example["question"],
                budget,
                example.get("asked_at", ""),
                self._plan.asking(item.spooled.dataset).prompt.told,
            )
            item.called_at = self._clock() - (self._plan.row_timeout - timeout)
            answer = await self._call(item, timeout)
            conversation.tries = 0
            return answer

        answer, item.attempts = await self._retry.call(attempt)
        return answer

    async def _ingest_again(self, conversation: Conversation) -> None:
        """Do so in the middle of a question, which fails for good where this does."""
        async with conversation.lock:
            try:
                await self.ingest(conversation)
            except CallFailed as error:
                raise CallFailed(replace(error.failure, retryable=False)) from error

    async def forget(self, conversation: Conversation) -> None:
        """Free what a conversation holds; where that fails only the system's memory is lost."""
        timeout = min(_FORGET_SECONDS, self._plan.row_timeout)
        for scope in conversation.scopes:
            try:
                await call_one(
                    self._caller, Call(f"{scope}-f", Reset(scope, is_last=True)), timeout
                )
            except CallFailed:
                # A replica that has not forgotten takes no other, and is told again.
                if self._is_single and self._caller.replicas is None:
                    self._held[scope] = None

    async def _forget_held(self) -> None:
        for scope in list(self._held):
            await self._reset(Reset(scope, is_last=True))
            del self._held[scope]

    async def forget_earlier(self, ordinal: int, repeat: int) -> None:
        """Free what the run left behind of a conversation when it was interrupted.

        A system with one state would take nothing else before that, so it is freed
        of every scope that may be in it; in others the first is where most was put.
        """
        last = self._plan.generation
        numbers = range(_MAX_TRIES if self._is_single else 1)
        for generation in range(max(0, last - _GENERATIONS_FORGOTTEN), last):
            name = self._scope(ordinal, repeat, generation)
            for number in numbers:
                with suppress(CallFailed):
                    await self._reset(Reset(f"{name}.{number}", is_last=True, is_stray=True))

    async def _reset(self, work: Reset) -> None:
        await self._retry.call(self._attempt(f"{work.scope}-r", work))

    def _scope(self, ordinal: int, repeat: int, generation: int) -> str:
        """Name a scope so that it tells nothing about what is asked in it."""
        return f"{call_id(self._plan.run_id, self._name, ordinal, repeat)}-{generation}"

    def _batches(self, head: SpooledExample) -> Iterator[list[Turn]]:
        """Cut the turns so that no call carries much more than a megabyte."""
        withheld = Withheld.of_turns(self._plan.datasets[head.dataset].reference_fields)
        batch: list[Turn] = []
        size = 0
        for turn in head.example["turns"]:
            if batch and size + len(turn["content"]) > _BATCH_CHARACTERS:
                yield batch
                batch, size = [], 0
            batch.append({name: value for name, value in turn.items() if name not in withheld})
            size += len(turn["content"])
        yield batch

    async def _call(self, call: Call, timeout: float) -> Answer:
        try:
            answer = await call_one(self._caller, call, timeout)
        except CallFailed as error:
            if error.failure.origin == "transport" and error.failure.retryable:
                self._losses += 1
            raise
        self._heard(call.work)
        return answer
