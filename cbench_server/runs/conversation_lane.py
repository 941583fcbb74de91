"""The lane of a memory system: feed conversations, ingest each, ask its questions.

A conversation's questions are rows of their own, so that a resumed run asks
only those that are missing, of the conversation ingested again.
"""

import asyncio
from collections import deque
from functools import partial
from typing import Any

from cbench_server.errors import CallFailed
from cbench_server.runs.context import RunContext
from cbench_server.runs.lane import COUNTING, Lane, width_of
from cbench_server.runs.rows import Item
from cbench_server.runs.scopes import Conversation, Scopes
from cbench_server.runs.store import SpooledExample
from cbench_server.sizes import LONG_TEXT, text_size
from cbench_server.systems.caller import Caller, Reset, texts_carried

_PAGE = 256
_CONVERSATIONS_AT_ONCE = 32


class ConversationLane(Lane):
    """One memory system's way through the conversations."""

    def __init__(self, context: RunContext, caller: Caller) -> None:
        announced = caller.description.max_concurrency
        width = width_of(context.plan.max_concurrency, announced)
        if announced:
            # More would be refused: it may have one state for all scopes.
            width = min(width, announced)
        super().__init__(context, caller, width)
        self._scopes = Scopes(
            caller, self._retry, self._plan, is_single=width == 1, heard=self._heard
        )
        self._width = width
        self._workers = min(width, _CONVERSATIONS_AT_ONCE)
        self._fed: asyncio.Queue[Conversation | None] = asyncio.Queue(1)
        self._is_draining = False
        self._idle: set[asyncio.Task[Any]] = set()

    def _heard(self) -> None:
        self._has_answered = True

    def _drive(self, group: asyncio.TaskGroup) -> None:
        self._idle.add(group.create_task(self._feed()))
        workers = [group.create_task(self._work()) for _ in range(self._workers)]
        group.create_task(self._note_begun(workers))

    async def _note_begun(self, workers: list[asyncio.Task[None]]) -> None:
        await asyncio.wait(workers)
        self._is_all_begun = True
        self._end_if_done()

    def drain(self) -> None:
        """Start no more calls."""
        self._is_draining = True
        for task in self._idle:
            task.cancel()
        self._slots.close()

    def pump(self) -> None:
        """Give places to calls that wait."""
        self._slots.pump()

    # Feeding: pages of questions become conversations.

    async def _feed(self) -> None:
        start = 0
        group: list[SpooledExample] = []
        done: set[tuple[int, int]] = set()
        source = self._context.source
        while page := await source.page(start, _PAGE):
            stop = page[-1].ordinal + 1
            done |= await source.completed(self.name, start, stop)
            for spooled in page:
                group.append(spooled)
                if len(group) == group[0].example["question_count"]:
                    await self._offer(group, done)
                    group = []
            done = {key for key in done if group and key[0] >= group[0].ordinal}
            start = stop
        for _ in range(self._workers):
            await self._fed.put(None)

    async def _offer(self, group: list[SpooledExample], done: set[tuple[int, int]]) -> None:
        for repeat in range(self._plan.repeats):
            if self._plan.generation:
                await self._forget_earlier(group[0], repeat)
            now = self._context.clock()
            conversation = Conversation(group[0], repeat=repeat)
            conversation.questions = [
                _item(conversation, spooled, repeat, now)
                for spooled in group
                if (spooled.ordinal, repeat) not in done
            ]
            if conversation.questions:
                await self._fed.put(conversation)

    async def _forget_earlier(self, head: SpooledExample, repeat: int) -> None:
        # In turn with the others: a system with one state may be between two calls for it.
        if await self._slots.take():
            try:
                await self._scopes.forget_earlier(head, repeat)
            finally:
                self._slots.give_back()

    # Working: a conversation becomes answers.

    async def _work(self) -> None:
        while (conversation := await self._next()) is not None:
            size = conversation.size
            if not await self._slots.take(size):
                return
            self._context.budget.hold(size)
            try:
                await self._measure(conversation)
                await self._hold_talk(conversation)
            finally:
                self._context.budget.release(size)
                self.pump()
                await self._scopes.forget(conversation)

    async def _next(self) -> Conversation | None:
        task = asyncio.current_task()
        if self._is_draining or task is None:
            return None
        self._idle.add(task)
        try:
            return await self._fed.get()
        finally:
            self._idle.discard(task)

    async def _measure(self, conversation: Conversation) -> None:
        if conversation.size <= LONG_TEXT:
            self._rows.measure(conversation)
        else:
            work = partial(self._rows.measure, conversation)
            await self._loop.run_in_executor(COUNTING, work)

    async def _hold_talk(self, conversation: Conversation) -> None:
        """Ingest, in the place that was given, then ask."""
        try:
            await self._scopes.ingest(conversation)
        except CallFailed as error:
            for item in conversation.questions:
                self._begin(item)
                await self._failed_for_good(item, error)
            return
        finally:
            self._slots.give_back()
        left = deque(conversation.questions)
        async with asyncio.TaskGroup() as group:
            for _ in range(min(self._width, len(left))):
                group.create_task(self._ask_all(conversation, left))

    async def _ask_all(self, conversation: Conversation, left: deque[Item]) -> None:
        while left:
            item = left.popleft()
            if not await self._slots.take():
                return
            self._begin(item)
            await self._ask(conversation, item)

    def _begin(self, item: Item) -> None:
        self._open += 1
        self._slots.begin_rows(1, item.size)
        item.called_at = self._context.clock()

    async def _ask(self, conversation: Conversation, item: Item) -> None:
        try:
            answer = await self._scopes.query(conversation, item, self._plan.query_budget)
            self._slots.answered(1)
            example = item.spooled.example
            answer.processed = {
                "id": example["id"],
                "question": example["question"],
                **answer.processed,
            }
            answer.carried = texts_carried(answer.processed, example)
            # The next question waits for the reader: a scope is asked one thing after another.
            await self._take_read(answer)
        except CallFailed as error:
            await self._failed_for_good(item, error)
        finally:
            self._slots.give_back()


def _item(conversation: Conversation, spooled: SpooledExample, repeat: int, now: float) -> Item:
    # Its call is named when it is made: that depends on the scope.
    size = text_size(spooled.example)
    return Item("", Reset(""), spooled, repeat, now, size, talk=conversation)
