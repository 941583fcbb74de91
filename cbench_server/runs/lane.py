"""Lanes: one system's way through a run, as far as it is the same for all systems.

A lane's driver decides what is called (example_lane.py, conversation_lane.py).
From there on the way is the same: a reader answers where the system did not,
evaluators score, a row is built and emitted.

A lane begins with its turn to be timed (turns.py). What comes of those calls
(scoring, readers, judges, further attempts) waits until all lanes have had it.
"""

import asyncio
from collections import deque
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

from cbench_server.errors import CallFailed, RunFailed
from cbench_server.limits import LONG_TEXT, MAX_CONCURRENCY, TURN_S
from cbench_server.models.account import ACCOUNT
from cbench_server.models.model import marks_of_failure
from cbench_server.models.reader import Reader
from cbench_server.models.tracing import TRACE
from cbench_server.results import EvalRow
from cbench_server.runs.context import RunContext
from cbench_server.runs.late_calls import LateCalls
from cbench_server.runs.load import Load
from cbench_server.runs.reading import reading
from cbench_server.runs.retry import Retry
from cbench_server.runs.rows import Item, RowBuilder
from cbench_server.runs.slots import Slots
from cbench_server.runs.turns import Allowance
from cbench_server.scoring.placement import InlineScoring
from cbench_server.spec import BUDGET_SPENT
from cbench_server.systems.caller import Answer, Caller, own_size
from cbench_server.systems.shared_level import SharedLevel

_SCORED_AT_ONCE = 64
# A batch costs as much as several rows on its way to the store. Where this many calls are in
# flight, answers that come one by one gather for a moment; the next calls are out already.
_BUSY_CALLS = 8
_GATHER_S = 0.004
# One at a time: an unbroken text of many megabytes takes fifty times its size to count.
COUNTING = ThreadPoolExecutor(1, thread_name_prefix="cbench-count")
# Reasons by which a system shows that no call to it can ever succeed.
_HOPELESS = {"UNIMPLEMENTED", "UNKNOWN_SYSTEM", "UNAUTHENTICATED", "PERMISSION_DENIED"}


class Lane:
    """What both kinds of lanes share. Belongs to one event loop."""

    def __init__(self, context: RunContext, caller: Caller, width: int) -> None:
        self._context = context
        self._plan = context.plan
        self._money = context.plan.money
        self._caller = caller
        self._loop = asyncio.get_running_loop()
        self.name = caller.description.name
        group = caller.replicas
        self._slots = Slots(
            width,
            caller.ahead,
            context.budget,
            context.clock,
            context.traffic,
            is_fixed=context.plan.is_width_fixed or not caller.description.has_times,
            scored_apart=context.scoring.at_once,
            level=None if group is None else SharedLevel(group),
        )
        self._retry = self._new_retry(self._slots, caller.wait_connected)
        self._rows = RowBuilder(self.name, self._plan)
        self._answered: deque[Answer] = deque()
        self._inline: dict[str, InlineScoring | None] = {}
        self._is_scoring = False
        self._has_answered = False
        self._open = 0
        """Rows begun and not yet emitted."""
        self._is_all_begun = False
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._group: asyncio.TaskGroup | None = None
        self._is_calling_alone = False
        self._warm: set[str] = set()
        """The replicas that were called, or the empty name of a system that has none."""
        self._deferred: list[Answer] = []
        self._deferred_failures: list[tuple[Item, CallFailed, float]] = []
        places = MAX_CONCURRENCY if group else caller.description.max_concurrency
        silence, traffic = context.silence_of(self.name), context.traffic
        self._late = LateCalls(silence, self._slots, traffic, self._plan, context.clock, places)

    def _new_retry(self, slots: Slots, wait_connected: Any) -> Retry:
        return Retry(
            self.name,
            self._plan,
            slots,
            self._context.clock,
            wait_connected,
            self._context.set_waiting,
            self.pump,
            self._broke,
        )

    async def run(self) -> None:
        """Make every row of this system that is not yet made."""
        started = self._context.clock()
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                self._drive(group)
                await self._ended
                self._context.timing[self.name] = self._context.clock() - started
                if self._money is not None:
                    self._money.ended(self.name)
                await self._ask_again()
            finally:
                self._group = None

    def _drive(self, group: asyncio.TaskGroup) -> None:
        """Start what makes the rows."""
        raise NotImplementedError

    async def _ask_again(self) -> None:
        """Ask some rows a second time, now that all are made, where that has no effects."""

    def drain(self) -> None:
        """Start no more calls."""
        raise NotImplementedError

    def pump(self) -> None:
        """Start the calls that may start now."""
        raise NotImplementedError

    def describe(self, load: Load) -> None:
        """Add what is under way."""
        self._slots.describe(load)

    def settle(self, rows: int, size: int) -> None:
        """Take note that rows are stored."""
        self._slots.settle(rows, size)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            assert self._group is not None
            self._group.create_task(work)
        except (AssertionError, RuntimeError):
            work.close()  # The group is falling, and this row with it.

    def _broke(self, error: BaseException) -> None:
        """End the lane because of what was raised outside of a task."""

        async def fail() -> None:
            raise error

        self._spawn(fail())

    def _emit(self, rows: list[EvalRow], size: int) -> None:
        self._open -= len(rows)
        self._context.emit(rows, self, size)
        self._end_if_done()

    def _end_if_done(self) -> None:
        if self._is_all_begun and not self._open and not self._ended.done():
            self._ended.set_result(None)

    # Being timed: calls one at a time, while no other system is called.

    async def _take_turn(self) -> None:
        """Have the first rows timed, then wait until every system has been."""
        turns = self._context.turns
        try:
            if self._plan.timed_rows and self._caller.description.has_times:
                await turns.take(self.name)
                self._is_calling_alone = True
                await self._call_alone(Allowance(self._plan.timed_rows, self._processes))
        finally:
            self._is_calling_alone = False
            turns.end(self.name)
        await turns.over.wait()
        self._release()

    async def _call_alone(self, allowance: Allowance) -> None:
        """Make the calls that are to be timed."""
        raise NotImplementedError

    @property
    def _processes(self) -> int:
        group = self._caller.replicas
        return 1 if group is None else group.count

    def _is_warmed_up(self, item: Item) -> bool:
        """Whether the process that answered was called before; the first call is discarded."""
        if item.replica in self._warm:
            return True
        self._warm.add(item.replica)
        return False

    @property
    def _is_timed(self) -> bool:
        return self._context.turns.is_held_by(self.name)

    def _defer(self, answer: Answer) -> None:
        """Keep an answer until no system is timed: scoring and storing would disturb the next."""
        self._slots.charges |= bool(answer.usage)
        self._deferred.append(answer)
        self._slots.note_size(answer.own_size)

    def _defer_failure(self, item: Item, error: CallFailed, allowance: Allowance) -> None:
        self._check_hopeless(error)
        if error.failure.origin == "transport" or self._late.is_full:
            allowance.stop()
        self._deferred_failures.append((item, error, item.took(self._context.clock())))

    async def _make_room(self) -> None:
        """Wait until one more row may be made, for which those before it must be stored."""
        if self._slots.is_window_full or self._slots.has_large_answers:
            self._release()
            await self._slots.settled()

    def _release(self) -> None:
        """Go on with what had to wait."""
        answers, self._deferred = self._deferred, []
        self._take(answers)
        failures, self._deferred_failures = self._deferred_failures, []
        for item, error, seconds in failures:
            item.called_at = self._context.clock() - seconds
            self._spawn(self._again_after(item, error))

    async def _again_after(self, item: Item, error: CallFailed) -> None:
        """Deal with a call that failed while it was timed."""
        raise NotImplementedError

    # Failures.

    async def _failed_for_good(self, item: Item, error: CallFailed) -> None:
        if error.failure.reason == BUDGET_SPENT:
            self._drop(item)
            return
        self._check_hopeless(error)
        work = partial(self._rows.failed, item, error.failure, item.took(self._context.clock()))
        is_short = item.spooled.size <= LONG_TEXT
        row = work() if is_short else await self._loop.run_in_executor(COUNTING, work)
        row.marks += marks_of_failure(error.failure)
        self._emit([row], item.size)
        self._late.silence.check()

    def _drop(self, item: Item) -> None:
        """Leave out a row that cannot be paid for; a run with more money makes it."""
        assert self._money is not None
        self._open -= 1
        self._slots.settle(1, item.size)
        self._money.dropped(item)
        self._end_if_done()

    def _check_hopeless(self, error: CallFailed) -> None:
        failure = error.failure
        is_hopeless = not self._has_answered and failure.reason in _HOPELESS
        if is_hopeless or failure.reason == "SYSTEM_CHANGED":
            who = f'system "{self.name}"'
            raise RunFailed(replace(failure, message=f"{who}: {error}"), who=who) from error

    # Reading: a model answers for a system that left answering to others.

    def _take(self, answers: list[Answer]) -> None:
        """Have answers read where that is wanted, and scored."""
        if self._plan.reader is None:
            self._queue(answers)
            return
        for answer in answers:
            if self._reader_for(answer) is None:
                self._queue([answer])
            else:
                self._spawn(self._take_read(answer))

    def _reader_for(self, answer: Answer) -> Reader | None:
        return self._plan.reader if Reader.is_needed(answer.processed) else None

    async def _take_read(self, answer: Answer) -> None:
        """Take an answer, having waited for the reader if it is one to be read."""
        if (reader := self._reader_for(answer)) is not None:
            TRACE.set(answer.call.span)
            try:
                await self._read(reader, answer)
            except CallFailed as error:
                answer.call.latency = answer.latency
                await self._failed_for_good(answer.call, error)
                return
        self._queue([answer])

    def _queue(self, answers: list[Answer]) -> None:
        for answer in answers:
            if answer.usage:
                self._slots.charges = True
        self._answered += answers
        self._score_soon()

    async def _read(self, reader: Reader, answer: Answer) -> None:
        item: Item = answer.call
        spooled = item.spooled
        work = partial(reading, self._plan, spooled.dataset, spooled.example, answer.processed)
        is_short = item.size + own_size(answer.processed, ()) <= LONG_TEXT
        asked = work() if is_short else await self._loop.run_in_executor(COUNTING, work)
        prompt = asked.prompt
        settings = reader.model.settings(prompt.max_tokens, prompt.stop)
        timeout, tokens = self._plan.row_timeout, asked.tokens
        said = await reader.read(asked.messages, settings, timeout, tokens, item.account)
        answer.processed = {**answer.processed, "response": said.content}
        answer.reader_usage, answer.reader_time = said.usage, said.seconds
        answer.finish_reason = said.finish_reason
        answer.marks = (*answer.marks, *said.marks)
        item.attempts += said.requests - 1

    # Scoring: answers become rows.

    def _score_soon(self) -> None:
        if not self._is_scoring and self._answered:
            self._is_scoring = True
            if self._slots.active >= _BUSY_CALLS and len(self._answered) < _SCORED_AT_ONCE:
                self._loop.call_later(_GATHER_S, self._score_some)
            else:
                self._loop.call_soon(self._score_some)

    def _score_some(self) -> None:
        """Score answers, a few at a time so that nothing else waits for long."""
        self._is_scoring = False
        if self._group is None:
            return
        rows: list[EvalRow] = []
        held = 0
        try:
            until = self._loop.time() + TURN_S
            for _ in range(min(len(self._answered), _SCORED_AT_ONCE)):
                if self._loop.time() > until:
                    break
                answer = self._answered.popleft()
                row = self._score_now(answer)
                if row is None:
                    self._spawn(self._score(answer))
                else:
                    rows.append(row)
                    held += answer.call.size
            if rows:
                self._emit(rows, held)
        except Exception as error:
            self._broke(error)
        self._score_soon()

    def _score_now(self, answer: Answer) -> EvalRow | None:
        """Score a short answer at once; None if it is long or an evaluator belongs elsewhere."""
        item: Item = answer.call
        spooled = item.spooled
        inline = self._inline_scoring(spooled.dataset)
        if inline is None:
            return None
        processed, size = answer.processed, answer.own_size
        if size > LONG_TEXT or item.size + size > inline.limit:
            return None
        clock = self._context.clock
        started = clock()
        self._hold(item, size)
        tokens = self._rows.tokens(answer)
        scored = inline.score(spooled.example, processed, tells_context=tokens.tells_context)
        return self._rows.scored(answer, scored, tokens, clock() - started)

    def _inline_scoring(self, dataset: str) -> InlineScoring | None:
        if dataset not in self._inline:
            evaluators = self._plan.datasets[dataset].evaluators
            self._inline[dataset] = self._context.scoring.inline(evaluators)
        return self._inline[dataset]

    async def _score(self, answer: Answer) -> None:
        """Score an answer that is long, or whose evaluators take their time."""
        started = self._context.clock()
        item: Item = answer.call
        size = answer.own_size
        self._hold(item, size)
        if size <= LONG_TEXT:
            tokens = self._rows.tokens(answer)
        else:
            work = partial(self._rows.tokens, answer)
            tokens = await self._loop.run_in_executor(COUNTING, work)
        evaluators = self._plan.datasets[item.spooled.dataset].evaluators
        # A task of its own, so that no other row pays.
        ACCOUNT.set(item.account)
        TRACE.set(item.span)
        pair = item.spooled.example, answer.processed
        scored = await self._context.scoring.score_row(
            evaluators, *pair, tells_context=tokens.tells_context
        )
        if item.account is not None and item.account.is_refused:
            self._drop(item)
            return
        row = self._rows.scored(answer, scored, tokens, self._context.clock() - started)
        self._emit([row], item.size)

    def _hold(self, item: Item, size: int) -> None:
        self._context.budget.hold(size)
        self._slots.note_size(size)
        item.size += size
