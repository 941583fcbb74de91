"""The lane of a memory system: feed conversations, ingest each, ask its questions.

A conversation's questions are rows of their own, so that a resumed run asks
only those that are missing, of the conversation ingested again.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from cbench_server.errors import CallFailed
from cbench_server.limits import LONG_TEXT, text_size
from cbench_server.runs.context import RunContext
from cbench_server.runs.lane import COUNTING, Lane
from cbench_server.runs.rows import Item
from cbench_server.runs.scopes import Conversation, Scopes
from cbench_server.runs.store import SpooledExample
from cbench_server.runs.turns import (
    CHOSEN_AMONG,
    CHOSEN_AMONG_BYTES,
    LEAST_TIMED,
    Allowance,
    chosen_among,
)
from cbench_server.runs.widths import width_of
from cbench_server.systems.caller import Answer, Caller, Query, Reset, Work, texts_carried

_PAGE = 256
_CONVERSATIONS_AT_ONCE = 32


class ConversationLane(Lane):
    """One memory system's way through the conversations."""

    def __init__(self, context: RunContext, caller: Caller) -> None:
        # More would be refused: it may have one state for all scopes.
        width = width_of(context, caller, is_bound=True)
        super().__init__(context, caller, width)
        group = caller.replicas
        is_single = width == 1 if group is None else group.is_single
        self._scopes = Scopes(
            caller,
            self._retry,
            self._plan,
            is_single=is_single,
            heard=self._heard,
            clock=context.clock,
        )
        self._is_single = is_single
        self._repeats = self._plan.repeats_of.get(self.name, self._plan.repeats)
        self._width = width
        self._workers = min(width, _CONVERSATIONS_AT_ONCE)
        self._fed: asyncio.Queue[Conversation | None] = asyncio.Queue(1)
        self._first: list[Conversation] = []
        """Those that were looked at to be timed, and are not done."""
        self._conversations = self._read_conversations()
        self._is_draining = False
        self._idle: set[asyncio.Task[Any]] = set()

    def _heard(self, work: Work) -> None:
        self._has_answered = True
        # To forget and to take in may need nothing of what answers.
        self._late.note_answered(is_heard=isinstance(work, Query))

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
        # A call that is being timed ends first, and nothing is called after it.
        if not (self._is_calling_alone and self._slots.active):
            for task in self._idle:
                task.cancel()
        self._release()
        self._slots.close()

    def pump(self) -> None:
        """Give places to calls that wait."""
        self._slots.pump()

    # Feeding: pages of questions become conversations.

    async def _feed(self) -> None:
        await self._take_turn()
        # Those who wait for a conversation would leave the first ones they are given.
        if not self._is_draining:
            async for conversation in self._affordable():
                await self._fed.put(conversation)
        for _ in range(self._workers):
            await self._fed.put(None)

    async def _affordable(self) -> AsyncIterator[Conversation]:
        """Yield the conversations that are left, as long as their questions can be paid for."""
        money = self._money
        first, self._first = self._first, []
        while first:
            # One that was begun, by this system or another, has money that the others wait for.
            begun = (n for n, each in enumerate(first) if money and money.is_open(each.questions))
            conversation = first.pop(next(begun, 0))
            if money is None or await money.open(conversation.questions, self.name):
                yield conversation
        async for conversation in self._conversations:
            if money is not None and not await money.open(conversation.questions, self.name):
                return
            yield conversation

    async def _read_conversations(self) -> AsyncIterator[Conversation]:
        if self._plan.generation and self._is_single:
            await self._free_single()
        async for group, done in self._groups():
            for repeat in range(self._repeats):
                if conversation := await self._conversation(group, repeat, done):
                    yield conversation

    async def _groups(self) -> AsyncIterator[tuple[list[SpooledExample], set[tuple[int, int]]]]:
        """Yield the questions of each conversation, with the rows that are there already."""
        start = 0
        group: list[SpooledExample] = []
        done: set[tuple[int, int]] = set()
        source = self._context.source
        while page := await source.page(start, _PAGE):
            stop = page[-1].ordinal + 1
            if self._money is not None:
                await self._money.appraise(page)
            done |= await source.completed(self.name, start, stop)
            for spooled in page:
                group.append(spooled)
                if len(group) == group[0].example["question_count"]:
                    yield group, done
                    group = []
            done = {key for key in done if group and key[0] >= group[0].ordinal}
            start = stop

    async def _conversation(
        self, group: list[SpooledExample], repeat: int, done: set[tuple[int, int]]
    ) -> Conversation | None:
        if self._plan.generation and not self._is_single:
            await self._forget_earlier(group[0].ordinal, repeat)
        left = _left(group, repeat, done)
        if not left:
            return None
        now = self._context.clock()
        conversation = Conversation(group[0], repeat=repeat)
        conversation.questions = [_item(conversation, spooled, repeat, now) for spooled in left]
        return conversation

    async def _free_single(self) -> None:
        """Free systems with one state, which take nothing else before, of what may be in them.

        That is a conversation which had begun: one of the last that are done, of those that the
        timed ones were chosen among, or of the next. Replicas may have any of them.
        """
        latest: deque[tuple[int, int]] = deque(maxlen=self._workers)
        questions = further = 0
        async for group, done in self._groups():
            for repeat in range(self._repeats):
                left = _left(group, repeat, done)
                latest.append((group[0].ordinal, repeat))
                if left or questions:
                    further += questions >= CHOSEN_AMONG
                    questions += len(left)
                    while latest:
                        await self._forget_earlier(*latest.popleft())
            if further > self._workers:
                return

    async def _forget_earlier(self, ordinal: int, repeat: int) -> None:
        # In turn with the others: a system with one state may be between two calls for it.
        if await self._slots.take():
            try:
                await self._scopes.forget_earlier(ordinal, repeat)
            finally:
                self._slots.give_back()

    # Being timed.

    async def _call_alone(self, allowance: Allowance) -> None:
        questions = size = 0
        async for conversation in self._conversations:
            self._first.append(conversation)
            questions += len(conversation.questions)
            size += conversation.size
            if questions >= CHOSEN_AMONG or size >= CHOSEN_AMONG_BYTES:
                break
        if questions <= LEAST_TIMED * self._processes:
            self._warm |= {"", *self._caller.description.replicas}
        first = list(self._first)
        for number in chosen_among(len(first), self._plan.seed):
            conversation = first[number]
            if self._is_timed_enough(allowance):
                break
            if conversation.repeat == 0:
                if self._money is not None and not self._money.try_open(conversation.questions):
                    break
                await self._time_talk(conversation, allowance)
                self._first.remove(conversation)
                if conversation.questions:
                    # It is in a scope that only the rest of its questions may end.
                    self._first.insert(0, conversation)
                else:
                    await self._scopes.forget(conversation)

    def _is_timed_enough(self, allowance: Allowance) -> bool:
        return allowance.is_spent or not self._is_timed or self._is_draining

    async def _time_talk(self, conversation: Conversation, allowance: Allowance) -> None:
        await self._measure(conversation)
        await self._make_room()
        if not await self._slots.take():
            return
        first = conversation.questions[0]
        first.called_at = self._context.clock()
        try:
            await self._scopes.ingest(conversation)
        except CallFailed as error:
            self._late.note_late(first, error.failure)
            while conversation.questions:
                item = conversation.questions.pop(0)
                self._begin(item)
                self._defer_failure(item, error, allowance)
            return
        finally:
            self._slots.give_back()
        conversation.ingested_alone = self._is_timed
        allowance.spend(conversation.ingest_time, calls=0)
        while conversation.questions and not self._is_timed_enough(allowance):
            await self._make_room()
            if not await self._slots.take():
                return
            await self._time_question(conversation, allowance)

    async def _time_question(self, conversation: Conversation, allowance: Allowance) -> None:
        item = conversation.questions.pop(0)
        self._begin(item)
        begun_at = item.called_at
        try:
            answer = await self._answer(conversation, item)
        except CallFailed as error:
            item.is_alone = self._is_warmed_up(item)
            self._late.note_late(item, error.failure)
            self._defer_failure(item, error, allowance)
        else:
            item.is_alone = self._is_warmed_up(item) and self._is_timed
            self._defer(answer)
        finally:
            self._slots.give_back()
        allowance.spend(self._context.clock() - begun_at, calls=int(item.is_alone))

    async def _again_after(self, item: Item, error: CallFailed) -> None:
        await self._failed_for_good(item, error)

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
            await self._ingest(conversation)
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

    async def _ingest(self, conversation: Conversation) -> None:
        first = conversation.questions[0]
        first.called_at = self._context.clock()
        self._late.note_sent([first])
        try:
            await self._scopes.ingest(conversation)
        except CallFailed as error:
            self._late.note_late(first, error.failure)
            if not self._late.is_to_retry(first, error):
                raise
            await self._late.retry_alone(first, partial(self._scopes.ingest, conversation))
            for item in conversation.questions:
                item.marks = first.marks

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
        self._late.note_sent([item])

    async def _ask(self, conversation: Conversation, item: Item) -> None:
        try:
            try:
                answer = await self._answer(conversation, item)
            except CallFailed as error:
                self._late.note_late(item, error.failure)
                if not self._late.is_to_retry(item, error):
                    raise
                once_more = partial(self._answer, conversation, item)
                answer = await self._late.retry_alone(item, once_more)
            # The next question waits for the reader: a scope is asked one thing after another.
            await self._take_read(answer)
        except CallFailed as error:
            await self._failed_for_good(item, error)
        finally:
            self._slots.give_back()

    async def _answer(self, conversation: Conversation, item: Item) -> Answer:
        answer = await self._scopes.query(conversation, item, self._plan.query_budget)
        self._slots.answered(1)
        example = item.spooled.example
        answer.processed = {
            "id": example["id"],
            "question": example["question"],
            **answer.processed,
        }
        answer.carried = texts_carried(answer.processed, example)
        return answer


def _left(
    group: list[SpooledExample], repeat: int, done: set[tuple[int, int]]
) -> list[SpooledExample]:
    return [spooled for spooled in group if (spooled.ordinal, repeat) not in done]


def _item(conversation: Conversation, spooled: SpooledExample, repeat: int, now: float) -> Item:
    # Its call is named when it is made: that depends on the scope.
    size = text_size(spooled.example)
    return Item("", Reset(""), spooled, repeat, now, size, talk=conversation)
