"""The lane of a system that transforms examples: feed, call, take the answers."""

import asyncio
from collections import deque
from functools import partial

from cbench_server.durable import failpoints
from cbench_server.errors import CallFailed
from cbench_server.limits import text_size
from cbench_server.results import EvalRow
from cbench_server.runs.asked_again import AskedAgain
from cbench_server.runs.context import RunContext
from cbench_server.runs.digests import call_namer
from cbench_server.runs.lane import Lane
from cbench_server.runs.money import Money
from cbench_server.runs.recorded_rows import recorded_row, rescore
from cbench_server.runs.rows import Item
from cbench_server.runs.silence import LATE
from cbench_server.runs.store import SpooledExample
from cbench_server.runs.turns import (
    CHOSEN_AMONG,
    CHOSEN_AMONG_BYTES,
    LEAST_TIMED,
    QUICK_SECONDS,
    Allowance,
    chosen_among,
)
from cbench_server.runs.widths import width_of
from cbench_server.systems.caller import Answer, Caller, Process, call_one

_PAGE = 256
_RECALLED_AT_ONCE = 32
# Rows among which those to be timed are chosen; more only where examples have many repeats.
_MAX_CHOSEN = 4096


class ExampleLane(Lane):
    """One system's way through the examples."""

    def __init__(self, context: RunContext, caller: Caller) -> None:
        super().__init__(context, caller, width_of(context, caller))
        self._name_call = call_namer(self._plan.run_id, self.name)
        self._repeats = self._plan.repeats_of.get(self.name, self._plan.repeats)
        self._again = AskedAgain(self._plan, caller, context.clock)
        self._is_draining = False
        self._items: deque[Item] = deque()
        self._fed = asyncio.Event()
        self._all_fed = False
        self._is_first = True
        self._width = 0
        self._taken: list[float] = []
        """Seconds that calls took which were timed alone."""
        self._start = 0
        """The ordinal of the next example to feed."""
        self._repeat = 0
        """The first repeat of it to feed."""
        self._feeder: asyncio.Task[None] | None = None
        self._tell_width()

    def _drive(self, group: asyncio.TaskGroup) -> None:
        self._feeder = group.create_task(self._feed())

    def drain(self) -> None:
        """Start no more calls."""
        self._is_draining = True
        self._all_fed = True
        self._items.clear()
        # A call that is being timed ends first, and nothing is called after it.
        if self._feeder is not None and not (self._is_calling_alone and self._slots.active):
            self._feeder.cancel()
        self._release()
        self._note_begun()

    async def _ask_again(self) -> None:
        if self._money is not None:
            await self._money.all_ended()
        if not self._is_draining and not (self._money and self._money.is_stopped):
            asked, differed = await self._again.ask()
            if asked:
                self._context.asked_again[self.name] = (asked, differed)

    def _take(self, answers: list[Answer]) -> None:
        self._again.note(answers)
        super()._take(answers)

    # Feeding: pages of examples become items.

    async def _feed(self) -> None:
        await self._take_turn()
        self.pump()
        while not self._all_fed and (items := await self._next_items()) is not None:
            self._items.extend(items)
            self.pump()
            while self._is_fed_enough and not self._all_fed:
                self._fed.clear()
                await self._fed.wait()
        self._all_fed = True
        self.pump()
        self._note_begun()

    @property
    def _is_fed_enough(self) -> bool:
        # Examples that others have begun must be at hand: their money is set aside for this one.
        is_near = self._money is None or self._start > self._money.highest
        return len(self._items) > _PAGE // 2 and is_near

    async def _next_items(self) -> list[Item] | None:
        """Return the rows to make of the next examples, None if there are no more."""
        source = self._context.source
        page = await source.page(self._start, max(1, _PAGE // self._repeats))
        if not page or self._all_fed:
            return None
        start, stop = self._start, page[-1].ordinal + 1
        repeats = range(self._repeat, min(self._repeats, self._repeat + _PAGE))
        # Of an example that has more repeats than fit, the rest comes with the next page.
        self._repeat = repeats.stop % self._repeats
        self._start = start if self._repeat else stop
        if self._money is not None:
            await self._money.appraise(page)
        done = await source.completed(self.name, start, stop)
        items = self._items_of(page, repeats, done)
        return items if self._plan.answers is None else await self._recall(items)

    def _note_begun(self) -> None:
        self._is_all_begun = self._all_fed and not self._items
        self._end_if_done()

    def _items_of(
        self, page: list[SpooledExample], repeats: range, done: set[tuple[int, int]]
    ) -> list[Item]:
        now = self._context.clock()
        datasets, name_call = self._plan.datasets, self._name_call
        items = []
        for spooled in page:
            ordinal = spooled.ordinal
            asking = self._plan.asking(spooled.dataset)
            dataset = datasets[spooled.dataset]
            work = Process(
                spooled.example,
                dataset.reference_fields,
                asking,
                asking.prompt.told,
                dataset.is_summary and self._plan.reader is None,
            )
            size = spooled.size or text_size(spooled.example)
            for repeat in repeats:
                if not done or (ordinal, repeat) not in done:
                    call_id = name_call(ordinal, repeat)
                    items.append(Item(call_id, work, spooled, repeat, now, size))
        return items

    # Being timed.

    async def _call_alone(self, allowance: Allowance) -> None:
        left: dict[int, list[Item]] = {}
        size = count = 0
        while self._start < CHOSEN_AMONG and size < CHOSEN_AMONG_BYTES and count < _MAX_CHOSEN:
            items = await self._next_items()
            if items is None:
                break
            for item in items:
                left.setdefault(item.spooled.ordinal, []).append(item)
                size += item.size
            count += len(items)
        seen = max(left, default=-1) + 1
        most = allowance.rows + self._processes
        order = chosen_among(max(self._start, seen), self._plan.seed)[:most]
        chosen = [ordinal for ordinal in order if ordinal in left]
        if len(chosen) <= LEAST_TIMED * self._processes:
            self._warm |= {"", *self._caller.description.replicas}
        for ordinal in chosen:
            if allowance.is_spent or not self._is_timed or self._all_fed:
                break
            await self._make_room()
            if self._money is not None and not self._money.try_open(left[ordinal][:1]):
                break
            await self._call_timed(left[ordinal].pop(0), allowance)
        taken = sorted(self._taken)
        if len(taken) >= LEAST_TIMED and taken[len(taken) // 2] <= QUICK_SECONDS:
            # Many calls in a message cost us less, and no call can wait for long.
            self._slots.begin_wide()
            self._tell_width()
        if not self._all_fed:
            self._items.extend([item for items in left.values() for item in items])

    async def _call_timed(self, item: Item, allowance: Allowance) -> None:
        clock = self._context.clock
        item.called_at = clock()
        self._slots.start(1, item.size)
        self._late.note_sent([item])
        self._open += 1
        try:
            answer = await call_one(self._caller, item, self._plan.row_timeout)
        except CallFailed as error:
            item.is_alone = self._is_warmed_up(item)
            self._late.note_late(item, error.failure)
            # Its place is kept until it is tried again, or failed for good.
            self._defer_failure(item, error, allowance)
        else:
            self._has_answered = True
            self._is_first = False
            self._late.note_answered()
            self._slots.end()
            self._slots.answered(1)
            item.is_alone = self._is_warmed_up(item) and self._is_timed
            if item.is_alone:
                handler = answer.handler_seconds
                self._taken.append(answer.latency if handler is None else handler)
            self._defer(answer)
        allowance.spend(clock() - item.called_at, calls=int(item.is_alone))

    async def _again_after(self, item: Item, error: CallFailed) -> None:
        is_alone = item.has_company and self._late.is_to_retry(item, error)
        await self._try_again(item, error, is_alone=is_alone)

    # Calling: items become answers.

    def pump(self) -> None:
        """Start the calls that may start now, all of them together."""
        if self._group is None:
            return
        items, slots, budget = self._items, self._slots, self._context.budget
        # The first call goes alone: a system that cannot be called at all is known at once.
        room = slots.room if not self._is_first else 1 - slots.active
        money = self._money
        if money is not None and money.is_stopped:
            self._leave_unpaid(money)
        if items and room > 0 and self._retry.is_open:
            calls: list[Item] = []
            now = self._context.clock()
            while items and len(calls) < room and budget.has_room(items[0].size):
                item = items.popleft() if money is None else money.next_item(items, self.name)
                if item is None:
                    break
                item.called_at = now
                budget.hold(item.size)
                calls.append(item)
            slots.start(len(calls), 0)
            self._late.note_sent(calls)
            self._open += len(calls)
            self._is_all_begun = self._all_fed and not items
            if calls:
                failpoints.hit("call.before")
                self._caller.start_many(calls, self._plan.row_timeout, self._answers, self._failure)
            elif money is not None and (self._all_fed or self._is_fed_enough):
                money.rest(self.name)
        if not self._is_fed_enough:
            self._fed.set()

    def _leave_unpaid(self, money: Money) -> None:
        """Drop what is not begun, now that nothing more is."""
        money.keep_open(self._items)
        if self._start > money.highest:
            self._all_fed = True
            self._note_begun()

    def _answers(self, answers: list[Answer]) -> None:
        if self._group is None:
            return
        failpoints.hit("call.after")
        self._has_answered = True
        self._is_first = False
        self._late.note_answered()
        slots = self._slots
        slots.succeeded(len(answers))
        slots.end(len(answers))
        slots.answered(len(answers))
        slots.note_size(max([each.own_size for each in answers]))
        self._tell_width()
        self._take(answers)
        # The next calls go out before these answers are scored, or a burst of
        # answers would leave the system idle until the last of them is scored.
        self.pump()

    def _tell_width(self) -> None:
        if self._slots.limit != self._width:
            self._width = self._slots.limit
            self._caller.widen(self._width)

    def _failure(self, item: Item, error: CallFailed) -> None:
        if self._group is not None:
            self._late.note_late(item, error.failure)
            is_alone = self._late.is_to_retry(item, error)
            self._spawn(self._try_again(item, error, is_alone=is_alone))

    async def _try_again(self, item: Item, error: CallFailed, *, is_alone: bool) -> None:
        """Make further attempts; what has failed for good becomes a row."""

        try:
            answer = await self._made_again(item, error, is_alone=is_alone)
        except CallFailed as failed:
            self._call_ended()
            await self._failed_for_good(item, failed)
            return
        self._has_answered = True
        self._late.note_answered()
        self._slots.answered(1)
        self._call_ended()
        self._take([answer])

    async def _made_again(self, item: Item, error: CallFailed, *, is_alone: bool) -> Answer:
        async def attempt(timeout: float) -> Answer:
            item.is_alone = False
            # Its time is that since its clock was set, which a lost call sets anew.
            item.called_at = self._context.clock() - (self._plan.row_timeout - timeout)
            return await call_one(self._caller, item, timeout)

        if is_alone:
            once_more = partial(attempt, self._plan.row_timeout)
            try:
                return await self._late.retry_alone(item, once_more)
            except CallFailed as again:
                if again.failure.reason == LATE:
                    raise
                # It is not about its time any more, and is as if it had never been.
                error = again
        made = item.attempts - 1
        answer, item.attempts = await self._retry.call(attempt, error, item.called_at, made)
        return answer

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
        dataset = self._plan.datasets[item.spooled.dataset]
        row = recorded_row(recorded, item.spooled, dataset.groups)
        item.size += text_size(recorded.processed or {})
        self._slots.begin_rows(1, item.size)
        self._open += 1
        account = None if self._money is None else self._money.spare_account()
        scored = await rescore(
            row, item.spooled.example, dataset, self._context.scoring, self._context.clock, account
        )
        if account is not None and account.is_refused:
            self._drop(item)
            return
        self._emit([scored], item.size)
