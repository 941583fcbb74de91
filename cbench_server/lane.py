"""One system's way through the examples: feed, permit, call, count, score."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from cbench_server.calling import Patience
from cbench_server.digests import call_id
from cbench_server.errors import CallFailed, RunFailed
from cbench_server.permits import AdaptiveLimit, ByteBudget
from cbench_server.plan import ExampleSource, Plan
from cbench_server.recordings import Place
from cbench_server.results import EvalRow
from cbench_server.row_parts import carried, text_size, usage_metadata
from cbench_server.runstore import SpooledExample
from cbench_server.scoring import ScoredRow, Scoring
from cbench_server.systems.caller import Caller, Reply
from cbench_server.tokens import count_fields_like
from cbench_server.types import Example

DEFAULT_CONCURRENCY = 32
MAX_CONCURRENCY = 1024
LONG_TEXT = 64 * 1024
_PAGE = 256
_SCORED_AT_ONCE = 32
# One at a time: an unbroken text of many megabytes takes fifty times its size to count.
COUNTING = ThreadPoolExecutor(1, thread_name_prefix="cbench-count")
# Reasons by which a system shows that no call to it can ever succeed.
HOPELESS = {"UNIMPLEMENTED", "UNKNOWN_SYSTEM", "UNAUTHENTICATED", "PERMISSION_DENIED"}


class Hub(Protocol):
    """What a lane needs of its runner."""

    plan: Plan
    source: ExampleSource
    scoring: Scoring
    clock: Callable[[], float]
    budget: ByteBudget
    timing: dict[str, float]

    def emit_row(self, row: EvalRow, item: "Item") -> None: ...

    def set_waiting(self, system: str, reason: str | None) -> None: ...


class Settling(Protocol):
    """A lane, as far as its items know it."""

    def settle(self, item: "Item") -> None: ...


@dataclass(slots=True)
class Item:
    """One row to make."""

    lane: "Settling"
    spooled: SpooledExample
    repeat: int
    ready_at: float
    size: int
    identity: str = ""
    sent: Example = field(default_factory=dict)
    called_at: float = 0.0
    recorded: Sequence[Place] = ()
    """Where its answer may be stored already."""


class Lane:
    """One system's way through the examples."""

    def __init__(self, runner: "Hub", caller: Caller) -> None:
        self._runner = runner
        self._plan = runner.plan
        self._caller = caller
        # A caller that can start a call and be told of its end spares us a task a row.
        self._start_call = getattr(caller, "start", None)
        self.name = caller.description.name
        announced = caller.description.max_concurrency
        wanted = self._plan.max_concurrency or announced or DEFAULT_CONCURRENCY
        width = max(1, min(wanted, MAX_CONCURRENCY))
        self._limit = AdaptiveLimit(width)
        self._patience = Patience(
            self.name,
            self._plan,
            self._limit,
            runner.clock,
            caller.wait_connected,
            runner.set_waiting,
        )
        # Calls in flight, and answers not yet stored: what a crash may repeat.
        self._window = width + max(8, width // 2)
        self._items: deque[Item] = deque()
        self._fed = asyncio.Event()
        self._all_fed = False
        self._active = 0
        self._open = 0
        self._unsettled = 0
        self._is_first = True
        self._answered: deque[tuple[Item, Reply]] = deque()
        self._quick: dict[str, Item] = {}
        self._is_scoring = False
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._group: asyncio.TaskGroup | None = None
        self._feeder: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Make every row of this system that is not yet made."""
        started = self._runner.clock()
        async with asyncio.TaskGroup() as group:
            self._group = group
            self._feeder = group.create_task(self._feed())
            try:
                await self._ended
            finally:
                self._group = None
                for identity in self._quick:
                    self._caller.give_up(identity)  # type: ignore[attr-defined] # it has `start`
        self._runner.timing[self.name] = self._runner.clock() - started

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            assert self._group is not None
            self._group.create_task(work)
        except RuntimeError:
            work.close()  # The group is falling, and this row with it.

    def drain(self) -> None:
        """Start no more calls."""
        self._all_fed = True
        self._items.clear()
        if self._feeder is not None:
            self._feeder.cancel()
        self._end_if_done()

    # Feeding: pages of examples become items.

    async def _feed(self) -> None:
        start = 0
        while not self._all_fed:
            page = await self._runner.source.page(start, _PAGE)
            if not page:
                break
            stop = page[-1].ordinal + 1
            done = await self._runner.source.completed(self.name, start, stop)
            recordings = self._plan.recordings
            recorded = await recordings.find(self.name, page) if recordings else {}
            if self._all_fed:
                break
            now = self._runner.clock()
            for spooled in page:
                size = text_size(spooled.example)
                for repeat in range(self._plan.repeats):
                    if (spooled.ordinal, repeat) not in done:
                        item = Item(self, spooled, repeat, now, size)
                        item.recorded = recorded.get(spooled.ordinal, ())
                        self._items.append(item)
            start = stop
            self.pump()
            while len(self._items) > _PAGE // 2 and not self._all_fed:
                self._fed.clear()
                await self._fed.wait()
        self._all_fed = True
        self._end_if_done()

    # Permits: who may go next.

    def pump(self) -> None:
        """Start the calls that may start now."""
        while self._group is not None and self._may_start():
            self._start(self._items.popleft())
        if len(self._items) <= _PAGE // 2:
            self._fed.set()

    def _may_start(self) -> bool:
        return (
            bool(self._items)
            and self._active < (1 if self._is_first else self._limit.current)
            and self._unsettled < self._window
            and self._runner.budget.has_room(self._items[0].size)
        )

    def settle(self, item: Item) -> None:
        """Take note that an item's row is safe."""
        self._unsettled -= 1
        self._runner.budget.release(item.size)

    def _call_ended(self) -> None:
        self._active -= 1
        self._is_first = False
        self.pump()

    def _emit(self, row: EvalRow, item: Item) -> None:
        self._open -= 1
        self._runner.emit_row(row, item)
        self._end_if_done()

    def _end_if_done(self) -> None:
        if self._all_fed and not self._items and not self._open and not self._ended.done():
            self._ended.set_result(None)

    # Calling: an item becomes an answer.

    def _start(self, item: Item) -> None:
        self._active += 1
        self._open += 1
        self._unsettled += 1
        self._runner.budget.hold(item.size)
        spooled = item.spooled
        withheld = self._plan.datasets[spooled.dataset].reference_fields
        item.sent = {name: value for name, value in spooled.example.items() if name not in withheld}
        item.identity = call_id(self._plan.run_id, self.name, spooled.ordinal, item.repeat)
        item.called_at = self._runner.clock()
        if item.recorded:
            self._spawn(self._recall(item))
            return
        if self._start_call is not None and self._patience.is_calm:
            self._quick[item.identity] = item
            is_started = self._start_call(
                item.sent,
                call_id=item.identity,
                timeout=self._plan.row_timeout,
                done=partial(self._quickly_answered, item),
            )
            if is_started:
                return
            del self._quick[item.identity]
        self._spawn(self._call(item))

    def _quickly_answered(self, item: Item, reply: Reply | CallFailed | None) -> None:
        """Take what came of a call; None if it has not been made after all."""
        del self._quick[item.identity]
        if isinstance(reply, Reply):
            self._limit.succeeded()
            self._answered.append((item, reply))
            # The next calls go out before this answer is scored, or a burst of
            # answers would leave the system idle until the last of them is scored.
            self._call_ended()
            self._score_soon()
        elif self._group is not None:
            self._spawn(self._call(item, reply))

    async def _call(self, item: Item, failed: CallFailed | None = None) -> None:
        """Call with patience; what has failed for good becomes a row."""

        async def attempt(timeout: float) -> Reply:
            return await self._caller.call(item.sent, call_id=item.identity, timeout=timeout)

        try:
            reply, attempts = await self._patience.call(attempt, failed)
        except CallFailed as error:
            if self._is_first and error.failure.reason in HOPELESS:
                raise RunFailed(
                    replace(error.failure, message=f'system "{self.name}": {error}')
                ) from error
            row = self._row(
                item,
                scores={},
                output_tokens=0,
                failure=error.failure,
                attempts=error.failure.attempts,
                latency=self._runner.clock() - item.called_at,
            )
            self._call_ended()
            self._emit(row, item)
            return
        self._call_ended()
        size = text_size(reply.processed)
        if attempts > 1 or size > LONG_TEXT:
            await self._score(item, reply, size, attempts)
        else:
            self._answered.append((item, reply))
            self._score_soon()

    async def _recall(self, item: Item) -> None:
        """Take the answer from the store, where it is, and score it."""
        recordings = self._plan.recordings
        assert recordings is not None
        recorded = await recordings.read(self.name, item.recorded, item.repeat)
        if recorded is None:
            await self._call(item)
            return
        self._call_ended()
        spooled = item.spooled
        row = replace(
            recorded,
            example_id=spooled.example["id"],
            dataset=spooled.dataset,
            index=spooled.index,
            ordinal=spooled.ordinal,
            group=str(spooled.example.get("group") or ""),
            queue_time=0.0,
            reused=True,
        )
        if recorded.processed is None:
            self._emit(row, item)
        else:
            await self._score_recorded(item, row, recorded.processed)

    # Scoring: an answer becomes a row.

    def _score_soon(self) -> None:
        if not self._is_scoring:
            self._is_scoring = True
            self._loop.call_soon(self._score_some)

    def _score_some(self) -> None:
        """Score answers, a few at a time so that nothing else waits for long."""
        self._is_scoring = False
        if self._group is None:
            return
        try:
            for _ in range(min(len(self._answered), _SCORED_AT_ONCE)):
                item, reply = self._answered.popleft()
                size = text_size(reply.processed)
                if size > LONG_TEXT or not self._score_now(item, reply, size):
                    self._spawn(self._score(item, reply, size))
        except Exception as error:
            if not self._ended.done():
                self._ended.set_exception(error)
        if self._answered:
            self._score_soon()

    def _score_now(self, item: Item, reply: Reply, size: int) -> bool:
        """Score a short answer at once; False if some evaluator belongs elsewhere."""
        replied_at = self._runner.clock()
        processed, example = reply.processed, item.spooled.example
        evaluators = self._plan.datasets[item.spooled.dataset].evaluators
        scored = self._runner.scoring.score_inline(evaluators, example, processed, item.size + size)
        if scored is None:
            return False
        self._hold(item, size)
        counts = count_fields_like(*self._counted(item, processed))
        self._emit(self._scored_row(item, reply, scored, counts, replied_at), item)
        return True

    async def _score(self, item: Item, reply: Reply, size: int, attempts: int = 1) -> None:
        replied_at = self._runner.clock()
        processed = reply.processed
        self._hold(item, size)
        arguments = self._counted(item, processed)
        if size <= LONG_TEXT:
            counts = count_fields_like(*arguments)
        else:
            counts = await self._loop.run_in_executor(
                COUNTING, lambda: count_fields_like(*arguments)
            )
        scored = await self._runner.scoring.score_row(
            self._plan.datasets[item.spooled.dataset].evaluators, item.spooled.example, processed
        )
        self._emit(self._scored_row(item, reply, scored, counts, replied_at, attempts), item)

    async def _score_recorded(self, item: Item, row: EvalRow, processed: Example) -> None:
        """Score an answer that was given before; what it took to give it stands."""
        started = self._runner.clock()
        example = item.spooled.example
        dataset = self._plan.datasets[item.spooled.dataset]
        self._hold(item, text_size(processed))
        scored = await self._runner.scoring.score_row(dataset.evaluators, example, processed)
        scored_row = replace(
            row,
            scores=scored.scores,
            primary_score=dataset.score_name(scored.scores),
            scoring_time=self._runner.clock() - started,
            details=scored.details,
            evaluator_failures=scored.failures,
            carried=carried(processed, example),
        )
        self._emit(scored_row, item)

    def _hold(self, item: Item, size: int) -> None:
        self._runner.budget.hold(size)
        item.size += size

    def _counted(self, item: Item, processed: Example) -> tuple[Any, ...]:
        spooled = item.spooled
        plan = self._plan
        return processed, spooled.example, spooled.field_tokens, plan.tokenizer, plan.text_fields

    def _scored_row(
        self,
        item: Item,
        reply: Reply,
        scored: ScoredRow,
        counts: dict[str, int],
        replied_at: float,
        attempts: int = 1,
    ) -> EvalRow:
        processed = reply.processed
        has_context = isinstance(processed.get("context"), str)
        dataset = self._plan.datasets[item.spooled.dataset]
        return self._row(
            item,
            scores=scored.scores,
            output_tokens=sum(counts.values()),
            metadata=usage_metadata(reply.usage),
            latency=reply.latency,
            primary_score=dataset.score_name(scored.scores),
            context_tokens_in=item.spooled.field_tokens.get("context") if has_context else None,
            context_tokens_out=counts.get("context") if has_context else None,
            usage=reply.usage,
            attempts=attempts,
            scoring_time=self._runner.clock() - replied_at,
            reader_time=reply.reader_time,
            reader_usage=reply.reader_usage,
            details=scored.details,
            evaluator_failures=scored.failures,
            processed=processed,
            carried=carried(processed, item.spooled.example),
        )

    def _row(self, item: Item, **rest: Any) -> EvalRow:
        spooled = item.spooled
        sent = item.sent
        tokens = spooled.field_tokens
        return EvalRow(
            system=self.name,
            example_id=spooled.example["id"],
            input_tokens=sum([count for name, count in tokens.items() if name in sent]),
            dataset=spooled.dataset,
            index=spooled.index,
            ordinal=spooled.ordinal,
            repeat=item.repeat,
            queue_time=item.called_at - item.ready_at,
            group=str(spooled.example.get("group") or ""),
            **rest,
        )
