"""One memory system's way through the conversations: feed, permit, ingest, ask, score.

A conversation's questions are rows of their own, so that a resumed run asks
only those that are missing, of the conversation ingested again.
"""

import asyncio
from collections import deque
from dataclasses import replace
from typing import Any

from cbench_server.calling import Patience
from cbench_server.errors import CallFailed, RunFailed
from cbench_server.lane import DEFAULT_CONCURRENCY, HOPELESS, MAX_CONCURRENCY, Hub, Item
from cbench_server.memory_rows import MemoryRows
from cbench_server.memory_scopes import Conversation, Scopes
from cbench_server.permits import AdaptiveLimit
from cbench_server.row_parts import text_size
from cbench_server.runstore import SpooledExample
from cbench_server.systems.memory_caller import MemoryCaller, Question

_PAGE = 256
_CONVERSATIONS_AT_ONCE = 32


class MemoryLane:
    """One memory system's way through the conversations."""

    def __init__(self, runner: Hub, caller: MemoryCaller) -> None:
        self._runner = runner
        self._plan = runner.plan
        self.name = caller.description.name
        announced = caller.description.max_concurrency
        wanted = self._plan.max_concurrency or announced or DEFAULT_CONCURRENCY
        # More than a system announces would be refused: it may have one state for all scopes.
        self._width = max(1, min(wanted, announced or wanted, MAX_CONCURRENCY))
        self._limit = AdaptiveLimit(self._width)
        patience = Patience(
            self.name,
            self._plan,
            self._limit,
            runner.clock,
            caller.wait_connected,
            runner.set_waiting,
        )
        self._scopes = Scopes(caller, patience, self._plan, is_single=self._width == 1)
        self._rows = MemoryRows(runner, self.name)
        # Calls in flight, and answers not yet stored: what a crash may repeat.
        self._window = self._width + max(8, self._width // 4)
        self._workers = min(self._width, _CONVERSATIONS_AT_ONCE)
        self._fed: asyncio.Queue[Conversation | None] = asyncio.Queue(1)
        self._waiters: deque[tuple[int, asyncio.Future[bool]]] = deque()
        self._active = 0
        self._unsettled = 0
        self._is_draining = False
        self._idle: set[asyncio.Task[Any]] = set()

    async def run(self) -> None:
        """Make every row of this system that is not yet made."""
        started = self._runner.clock()
        async with asyncio.TaskGroup() as group:
            self._idle.add(group.create_task(self._feed()))
            for _ in range(self._workers):
                group.create_task(self._work())
        self._runner.timing[self.name] = self._runner.clock() - started

    def drain(self) -> None:
        """Start no more calls."""
        self._is_draining = True
        for task in self._idle:
            task.cancel()
        while self._waiters:
            _, waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(False)

    # Feeding: pages of questions become conversations.

    async def _feed(self) -> None:
        start = 0
        group: list[SpooledExample] = []
        done: set[tuple[int, int]] = set()
        while page := await self._runner.source.page(start, _PAGE):
            stop = page[-1].ordinal + 1
            done |= await self._runner.source.completed(self.name, start, stop)
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
            now = self._runner.clock()
            missing = [
                Item(self, spooled, repeat, now, text_size(spooled.example))
                for spooled in group
                if (spooled.ordinal, repeat) not in done
            ]
            if missing:
                await self._fed.put(Conversation(group[0], repeat, missing))

    async def _forget_earlier(self, head: SpooledExample, repeat: int) -> None:
        # In turn with the others, lest a system with one state be between two calls for it.
        if await self._permit():
            try:
                await self._scopes.forget_earlier(head, repeat)
            finally:
                self._release()

    # Permits: who may call next.

    async def _permit(self, size: int = 0) -> bool:
        """Wait for a place among the calls in flight; False if no more calls are to be made.

        `size` is that of a conversation, which must have room in memory too; its
        questions need no further room.
        """
        if self._is_draining:
            return False
        waiter: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiters.append((size, waiter))
        self.pump()
        return await waiter

    def pump(self) -> None:
        """Give places to those who wait, in their order."""
        for _ in range(len(self._waiters)):
            if self._active >= self._limit.current or self._unsettled >= self._window:
                return
            size, waiter = self._waiters.popleft()
            if size and not self._runner.budget.has_room(size):
                # It must not hold up the questions of those whose end makes room.
                self._waiters.append((size, waiter))
            elif not waiter.done():
                self._active += 1
                waiter.set_result(True)

    def _release(self) -> None:
        self._active -= 1
        self.pump()

    def settle(self, item: Item) -> None:
        """Take note that an item's row is safe."""
        self._unsettled -= 1
        self._runner.budget.release(item.size)

    # Working: a conversation becomes rows.

    async def _work(self) -> None:
        while (conversation := await self._next()) is not None:
            size = conversation.size
            if not await self._permit(size):
                return
            self._runner.budget.hold(size)
            try:
                await self._rows.measure(conversation)
                await self._hold(conversation)
            finally:
                self._runner.budget.release(size)
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

    async def _hold(self, conversation: Conversation) -> None:
        """Ingest, in the place that was given, then ask."""
        try:
            await self._scopes.ingest(conversation)
        except CallFailed as error:
            self._check_hopeless(error)
            for item in conversation.questions:
                self._begin(item)
                row = self._rows.failed(conversation, item, error.failure)
                self._runner.emit_row(row, item)
            return
        finally:
            self._release()
        left = deque(conversation.questions)
        async with asyncio.TaskGroup() as group:
            for _ in range(min(self._width, len(left))):
                group.create_task(self._ask_all(conversation, left))

    async def _ask_all(self, conversation: Conversation, left: deque[Item]) -> None:
        while left:
            item = left.popleft()
            if not await self._permit():
                return
            self._begin(item)
            await self._ask(conversation, item)

    def _begin(self, item: Item) -> None:
        self._unsettled += 1
        self._runner.budget.hold(item.size)
        item.called_at = self._runner.clock()

    async def _ask(self, conversation: Conversation, item: Item) -> None:
        example = item.spooled.example
        question = Question(
            example["question"], self._plan.query_budget, example.get("asked_at", "")
        )
        try:
            reply, attempts = await self._scopes.query(conversation, question, item.spooled.ordinal)
        except CallFailed as error:
            self._check_hopeless(error)
            row = self._rows.failed(conversation, item, error.failure)
            self._runner.emit_row(row, item)
            return
        finally:
            self._release()
        row = await self._rows.scored(conversation, item, reply, attempts)
        self._runner.emit_row(row, item)

    def _check_hopeless(self, error: CallFailed) -> None:
        failure = error.failure
        if not self._scopes.has_answered and failure.reason in HOPELESS:
            raise RunFailed(replace(failure, message=f'system "{self.name}": {error}')) from error
