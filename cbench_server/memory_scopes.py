"""Conversations in a memory system: each in a scope of its own, whole or put in again.

A call that is lost on the way may mean that the system has come back without
its memory, and would answer from nothing; so may a connection that was made
anew between two calls. So a conversation counts as whole only while neither
has happened since it was begun; otherwise it is ingested again, under a new
scope, before it is asked again.
"""

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TypeVar

from cbench_server.calling import Patience
from cbench_server.digests import call_id
from cbench_server.errors import CallFailed
from cbench_server.lane import Item
from cbench_server.plan import Plan
from cbench_server.results import Failure
from cbench_server.runstore import SpooledExample
from cbench_server.systems.memory_caller import (
    IngestReply,
    MemoryCaller,
    QueryReply,
    Question,
    Turn,
)

T = TypeVar("T")
_Era = tuple[int, str]

_BATCH_CHARACTERS = 1_000_000
_MAX_TRIES = 8
_FORGET_SECONDS = 5.0
_GENERATIONS_FORGOTTEN = 8
# Marks the turns that hold the answer in LongMemEval and in files made after it.
_TELLTALE = "has_answer"


@dataclass
class Conversation:
    """A conversation with the questions still to be asked about it."""

    head: SpooledExample
    repeat: int
    questions: list[Item]
    scopes: list[str] = field(default_factory=list)
    """Where it was put; only the last one is asked."""
    era: "_Era | None" = None
    """When it was put there; None until it is whole."""
    tries: int = 0
    """How often it was put somewhere since its last answer."""
    tokens: int = 0
    ingest_time: float = 0.0
    stored_bytes: int | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def size(self) -> int:
        """Bytes of text it holds, about."""
        return sum(len(turn["content"]) for turn in self.head.example["turns"])


class Scopes:
    """The scopes of one memory system."""

    def __init__(
        self, caller: MemoryCaller, patience: Patience, plan: Plan, *, is_single: bool
    ) -> None:
        """`is_single` says that the system is called once at a time, so may have one state."""
        self._caller = caller
        self._name = caller.description.name
        self._patience = patience
        self._plan = plan
        self._is_single = is_single
        self._losses = 0
        self._held: dict[str, None] = {}
        """What a system with one state may not have forgotten: it was busy when it was told to."""
        self.has_answered = False
        """Whether any call has ever succeeded."""

    @property
    def _era(self) -> _Era:
        return self._losses, self._caller.era

    async def ingest(self, conversation: Conversation) -> None:
        """Feed a conversation into a fresh scope, until it is in without a call lost."""
        while conversation.era != self._era:
            if conversation.tries >= _MAX_TRIES:
                message = f'"{self._name}" went away {_MAX_TRIES} times with this conversation.'
                raise CallFailed(Failure("transport", "UNAVAILABLE", message))
            if self._is_single:
                # A system with one state takes no second scope beside the first. Elsewhere
                # the first may still be answering.
                await self.forget(conversation)
                await self._forget_held()
            name = self._scope(conversation.head, conversation.repeat, self._plan.generation)
            scope = f"{name}.{len(conversation.scopes)}"
            conversation.scopes.append(scope)
            conversation.tries += 1
            conversation.ingest_time = 0.0
            await self._reset(scope)
            era = self._era
            for number, turns in enumerate(self._batches(conversation.head)):
                reply = await self._ingest_batch(scope, turns, f"{scope}-t{number}")
                conversation.ingest_time += reply.latency
                conversation.stored_bytes = reply.stored_bytes
            conversation.era = era

    async def _ingest_batch(self, scope: str, turns: list[Turn], identity: str) -> IngestReply:
        reply, _ = await self._patience.call(
            lambda timeout: self._noting_loss(
                self._caller.ingest(scope, turns, call_id=identity, timeout=timeout)
            )
        )
        return reply

    async def query(
        self, conversation: Conversation, question: Question, ordinal: int
    ) -> tuple[QueryReply, int]:
        """Ask with patience; return the answer and the attempts it took."""

        async def attempt(timeout: float) -> QueryReply:
            if conversation.era != self._era:
                await self._ingest_again(conversation)
            scope = conversation.scopes[-1]
            reply = await self._noting_loss(
                self._caller.query(scope, question, call_id=f"{scope}-{ordinal}", timeout=timeout)
            )
            conversation.tries = 0
            return reply

        return await self._patience.call(attempt)

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
                await self._caller.reset(scope, call_id=f"{scope}-f", timeout=timeout)
            except CallFailed:
                if self._is_single:
                    self._held[scope] = None

    async def _forget_held(self) -> None:
        for scope in list(self._held):
            await self._reset(scope)
            del self._held[scope]

    async def forget_earlier(self, head: SpooledExample, repeat: int) -> None:
        """Free what the run left behind when it was interrupted.

        A system with one state would take nothing else before that, so it is freed
        of every scope that may be in it; in others the first is where most was put.
        """
        last = self._plan.generation
        numbers = range(_MAX_TRIES if self._is_single else 1)
        for generation in range(max(0, last - _GENERATIONS_FORGOTTEN), last):
            name = self._scope(head, repeat, generation)
            for number in numbers:
                with suppress(CallFailed):
                    await self._reset(f"{name}.{number}")

    async def _reset(self, scope: str) -> None:
        await self._patience.call(
            lambda timeout: self._noting_loss(
                self._caller.reset(scope, call_id=f"{scope}-r", timeout=timeout)
            )
        )

    def _scope(self, head: SpooledExample, repeat: int, generation: int) -> str:
        """Name a scope so that it tells nothing about what is asked in it."""
        return f"{call_id(self._plan.run_id, self._name, head.ordinal, repeat)}-{generation}"

    def _batches(self, head: SpooledExample) -> Iterator[list[Turn]]:
        """Cut the turns so that no call carries much more than a megabyte."""
        withheld = {*self._plan.datasets[head.dataset].reference_fields, _TELLTALE}
        batch: list[Turn] = []
        size = 0
        for turn in head.example["turns"]:
            if batch and size + len(turn["content"]) > _BATCH_CHARACTERS:
                yield batch
                batch, size = [], 0
            batch.append({name: value for name, value in turn.items() if name not in withheld})
            size += len(turn["content"])
        yield batch

    async def _noting_loss(self, call: Awaitable[T]) -> T:
        try:
            answer = await call
        except CallFailed as error:
            if error.failure.origin == "transport" and error.failure.retryable:
                self._losses += 1
            raise
        self.has_answered = True
        return answer
