"""The lane of a system that transforms examples: feed, call, take the answers."""

import asyncio
from collections import deque

from cbench_server.errors import CallFailed
from cbench_server.results import EvalRow
from cbench_server.runs.context import RunContext
from cbench_server.runs.digests import call_namer
from cbench_server.runs.lane import Lane, width_of
from cbench_server.runs.rows import Item, recorded_row, rescore
from cbench_server.runs.store import SpooledExample
from cbench_server.sizes import text_size
from cbench_server.systems.caller import Answer, Caller, Process, call_one

_PAGE = 256
_RECALLED_AT_ONCE = 32


class ExampleLane(Lane):
    """One system's way through the examples."""

    def __init__(self, context: RunContext, caller: Caller) -> None:
        announced = caller.description.max_concurrency
        super().__init__(context, caller, width_of(context.plan.max_concurrency, announced))
        self._name_call = call_namer(self._plan.run_id, self.name)
        self._repeats = self._plan.repeats_of.get(self.name, self._plan.repeats)
        self._items: deque[Item] = deque()
        self._fed = asyncio.Event()
        self._all_fed = False
        self._is_first = True
        self._feeder: asyncio.Task[None] | None = None

    def _drive(self, group: asyncio.TaskGroup) -> None:
        self._feeder = group.create_task(self._feed())

    def drain(self) -> None:
        """Start no more calls."""
        self._all_fed = True
        self._items.clear()
        if self._feeder is not None:
            self._feeder.cancel()
        self._note_begun()

    # Feeding: pages of examples become items.

    async def _feed(self) -> None:
        start = 0
        source = self._context.source
        while not self._all_fed:
            page = await source.page(start, _PAGE)
            if not page:
                break
            stop = page[-1].ordinal + 1
            done = await source.completed(self.name, start, stop)
            items = self._items_of(page, done)
            if self._plan.answers is not None:
                items = await self._recall(items)
            if self._all_fed:
                break
            self._items.extend(items)
            start = stop
            self.pump()
            while len(self._items) > _PAGE // 2 and not self._all_fed:
                self._fed.clear()
                await self._fed.wait()
        self._all_fed = True
        self._note_begun()

    def _note_begun(self) -> None:
        self._is_all_begun = self._all_fed and not self._items
        self._end_if_done()

    def _items_of(self, page: list[SpooledExample], done: set[tuple[int, int]]) -> list[Item]:
        now = self._context.clock()
        datasets, name_call = self._plan.datasets, self._name_call
        items = []
        for spooled in page:
            ordinal = spooled.ordinal
            asking = self._plan.asking(spooled.dataset)
            withheld = datasets[spooled.dataset].reference_fields
            work = Process(spooled.example, withheld, asking, asking.prompt.told)
            size = spooled.size or text_size(spooled.example)
            for repeat in range(self._repeats):
                if not done or (ordinal, repeat) not in done:
                    call_id = name_call(ordinal, repeat)
                    items.append(Item(call_id, work, spooled, repeat, now, size))
        return items

    # Calling: items become answers.

    def pump(self) -> None:
        """Start the calls that may start now, all of them together."""
        if self._group is None:
            return
        items, slots, budget = self._items, self._slots, self._context.budget
        # The first call goes alone: a system that cannot be called at all is known at once.
        room = slots.room if not self._is_first else 1 - slots.active
        if items and room > 0 and self._retry.is_open:
            calls: list[Item] = []
            now = self._context.clock()
            while items and len(calls) < room and budget.has_room(items[0].size):
                item = items.popleft()
                item.called_at = now
                budget.hold(item.size)
                calls.append(item)
            slots.start(len(calls), 0)
            self._open += len(calls)
            self._is_all_begun = self._all_fed and not items
            if calls:
                self._caller.start_many(calls, self._plan.row_timeout, self._answers, self._failure)
        if len(items) <= _PAGE // 2:
            self._fed.set()

    def _answers(self, answers: list[Answer]) -> None:
        if self._group is None:
            return
        self._has_answered = True
        self._is_first = False
        self._slots.end(len(answers))
        self._slots.succeeded(len(answers))
        self._slots.answered(len(answers))
        self._take(answers)
        # The next calls go out before these answers are scored, or a burst of
        # answers would leave the system idle until the last of them is scored.
        self.pump()

    def _failure(self, item: Item, error: CallFailed) -> None:
        if self._group is not None:
            self._spawn(self._try_again(item, error))

    async def _try_again(self, item: Item, error: CallFailed) -> None:
        """Make further attempts; what has failed for good becomes a row."""

        async def attempt(timeout: float) -> Answer:
            return await call_one(self._caller, item, timeout)

        try:
            answer, item.attempts = await self._retry.call(attempt, error)
        except CallFailed as failed:
            self._call_ended()
            await self._failed_for_good(item, failed)
            return
        self._has_answered = True
        self._slots.answered(1)
        self._call_ended()
        self._take([answer])

    def _call_ended(self) -> None:
        self._slots.end()
        self._is_first = False
        self.pump()

    # Answers of earlier runs.

    async def _recall(self, items: list[Item]) -> list[Item]:
        """Make the rows of which earlier runs have the answers, and return the other items."""
        answers = self._plan.answers
        assert answers is not None
        rest: list[Item] = []
        for start in range(0, len(items), _RECALLED_AT_ONCE):
            chunk = items[start : start + _RECALLED_AT_ONCE]
            await self._slots.settled()
            rows = await answers.read(self.name, [(each.spooled, each.repeat) for each in chunk])
            for item, row in zip(chunk, rows, strict=True):
                if row is None:
                    rest.append(item)
                else:
                    await self._reuse(item, row)
        return rest

    async def _reuse(self, item: Item, recorded: EvalRow) -> None:
        row = recorded_row(recorded, item.spooled)
        dataset = self._plan.datasets[item.spooled.dataset]
        item.size += text_size(recorded.processed or {})
        self._slots.begin_rows(1, item.size)
        self._open += 1
        scored = await rescore(
            row, item.spooled.example, dataset, self._context.scoring, self._context.clock
        )
        self._emit([scored], item.size)
