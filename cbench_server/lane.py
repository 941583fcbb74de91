"""One system's way through the examples: feed, permit, call, count, score."""

import asyncio
import random
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Protocol

from cbench_server.digests import call_id
from cbench_server.errors import CallFailed, RunFailed
from cbench_server.permits import AdaptiveLimit, ByteBudget
from cbench_server.plan import ExampleSource, Plan
from cbench_server.results import EvalRow, Failure
from cbench_server.runstore import SpooledExample
from cbench_server.scoring import Scoring
from cbench_server.systems.caller import Caller, Reply
from cbench_server.tokens import count_fields_like
from cbench_server.types import Example

DEFAULT_CONCURRENCY = 32
MAX_CONCURRENCY = 1024
LONG_TEXT = 64 * 1024
_PAGE = 256
_MAX_LOST_CALLS = 8
_YIELDS_BEFORE_SCORING = 3
_WAIT_BEFORE_WAITING_S = 1.0
# One at a time: an unbroken text of many megabytes takes fifty times its size to count.
_COUNTING = ThreadPoolExecutor(1, thread_name_prefix="cbench-count")
# Reasons by which a system shows that no call to it can ever succeed.
_HOPELESS = {"UNIMPLEMENTED", "UNKNOWN_SYSTEM", "UNAUTHENTICATED", "PERMISSION_DENIED"}


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


@dataclass(slots=True)
class Item:
    """One row to make."""

    lane: "Lane"
    spooled: SpooledExample
    repeat: int
    ready_at: float
    size: int


class Lane:
    """One system's way through the examples."""

    def __init__(self, runner: "Hub", caller: Caller) -> None:
        self._runner = runner
        self._plan = runner.plan
        self._caller = caller
        self.name = caller.description.name
        announced = caller.description.max_concurrency
        wanted = self._plan.max_concurrency or announced or DEFAULT_CONCURRENCY
        width = max(1, min(wanted, MAX_CONCURRENCY))
        self._limit = AdaptiveLimit(width)
        # Calls in flight, and answers not yet stored: what a crash may repeat.
        self._window = width + max(8, width // 4)
        self._items: deque[Item] = deque()
        self._fed = asyncio.Event()
        self._all_fed = False
        self._waiters: deque[asyncio.Future[Item | None]] = deque()
        self._active = 0
        self._unsettled = 0
        self._is_first = True
        self._gate = asyncio.Event()
        self._gate.set()
        self._reconnecting: asyncio.Task[None] | None = None
        self._feeder: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Make every row of this system that is not yet made."""
        started = self._runner.clock()
        async with asyncio.TaskGroup() as group:
            self._feeder = group.create_task(self._feed())
            for _ in range(self._window):
                group.create_task(self._work())
        self._runner.timing[self.name] = self._runner.clock() - started

    def drain(self) -> None:
        """Start no more calls."""
        self._all_fed = True
        self._items.clear()
        if self._feeder is not None:
            self._feeder.cancel()
        self.pump()

    # Feeding: pages of examples become items.

    async def _feed(self) -> None:
        start = 0
        while not self._all_fed:
            page = await self._runner.source.page(start, _PAGE)
            if not page:
                break
            stop = page[-1].ordinal + 1
            done = await self._runner.source.completed(self.name, start, stop)
            if self._all_fed:
                break
            now = self._runner.clock()
            for spooled in page:
                size = text_size(spooled.example)
                for repeat in range(self._plan.repeats):
                    if (spooled.ordinal, repeat) not in done:
                        self._items.append(Item(self, spooled, repeat, now, size))
            start = stop
            self.pump()
            while len(self._items) > _PAGE // 2 and not self._all_fed:
                self._fed.clear()
                await self._fed.wait()
        self._all_fed = True
        self.pump()

    # Permits: who may go next.

    def _may_start(self) -> bool:
        return (
            bool(self._items)
            and self._active < (1 if self._is_first else self._limit.current)
            and self._unsettled < self._window
            and self._runner.budget.has_room(self._items[0].size)
        )

    def _start(self) -> Item:
        item = self._items.popleft()
        self._active += 1
        self._unsettled += 1
        self._runner.budget.hold(item.size)
        if len(self._items) <= _PAGE // 2:
            self._fed.set()
        return item

    async def _next(self) -> Item | None:
        if not self._waiters and self._may_start():
            return self._start()
        if self._all_fed and not self._items:
            return None
        waiter: asyncio.Future[Item | None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        return await waiter

    def pump(self) -> None:
        """Give waiting workers what they may start now."""
        while self._waiters:
            if self._waiters[0].done():
                self._waiters.popleft()  # Cancelled: its worker is gone.
            elif self._may_start():
                self._waiters.popleft().set_result(self._start())
            elif self._all_fed and not self._items:
                self._waiters.popleft().set_result(None)
            else:
                return

    def settle(self, item: Item) -> None:
        """Take note that an item's row is safe."""
        self._unsettled -= 1
        self._runner.budget.release(item.size)

    def _call_ended(self) -> None:
        self._active -= 1
        self._is_first = False
        self.pump()

    # Working: an item becomes a row.

    async def _work(self) -> None:
        while (item := await self._next()) is not None:
            self._runner.emit_row(await self._make_row(item), item)

    async def _make_row(self, item: Item) -> EvalRow:
        example = item.spooled.example
        dataset = self._plan.datasets[item.spooled.dataset]
        withheld = dataset.reference_fields
        sent = {name: value for name, value in example.items() if name not in withheld}
        called_at = self._runner.clock()
        try:
            reply, attempts = await self._call(item, sent)
        except CallFailed as error:
            if self._is_first and error.failure.reason in _HOPELESS:
                raise RunFailed(
                    replace(error.failure, message=f'system "{self.name}": {error}')
                ) from error
            return self._row(
                item,
                sent,
                called_at,
                scores={},
                output_tokens=0,
                failure=error.failure,
                attempts=error.failure.attempts,
                latency=self._runner.clock() - called_at,
            )
        finally:
            self._call_ended()
        # The next calls go out before this row is scored: first their workers
        # wake, then they encode, then the stream writes. Otherwise a burst of
        # answers leaves the system idle until the last of them is scored.
        for _ in range(_YIELDS_BEFORE_SCORING):
            await asyncio.sleep(0)
        replied_at = self._runner.clock()
        processed = reply.processed
        size = text_size(processed)
        self._runner.budget.hold(size)
        item.size += size
        counts = await self._count(item, processed, size)
        scoring = self._runner.scoring
        # The item's size is now that of both sides.
        scored = scoring.score_inline(dataset.evaluators, example, processed, item.size)
        if scored is None:
            scored = await scoring.score_row(dataset.evaluators, example, processed)
        has_context = isinstance(processed.get("context"), str)
        return self._row(
            item,
            sent,
            called_at,
            scores=scored.scores,
            output_tokens=sum(counts.values()),
            metadata=_usage_metadata(reply.usage),
            latency=reply.latency,
            primary_score=_primary_score(dataset.primary_score, scored.scores),
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
            carried=_carried(processed, example),
        )

    def _row(self, item: Item, sent: Example, called_at: float, **rest: Any) -> EvalRow:
        spooled = item.spooled
        tokens = spooled.field_tokens
        return EvalRow(
            system=self.name,
            example_id=spooled.example["id"],
            input_tokens=sum([count for name, count in tokens.items() if name in sent]),
            dataset=spooled.dataset,
            index=spooled.index,
            ordinal=spooled.ordinal,
            repeat=item.repeat,
            queue_time=called_at - item.ready_at,
            group=str(spooled.example.get("group") or ""),
            **rest,
        )

    async def _count(self, item: Item, processed: Example, size: int) -> dict[str, int]:
        arguments = (
            processed,
            item.spooled.example,
            item.spooled.field_tokens,
            self._plan.tokenizer,
            self._plan.text_fields,
        )
        if size <= LONG_TEXT:
            return count_fields_like(*arguments)
        return await asyncio.get_running_loop().run_in_executor(
            _COUNTING, lambda: count_fields_like(*arguments)
        )

    # Calling, with patience.

    async def _call(self, item: Item, sent: Example) -> tuple[Reply, int]:
        identity = call_id(self._plan.run_id, self.name, item.spooled.ordinal, item.repeat)
        remaining = self._plan.row_timeout
        attempts = lost = 0
        while True:
            if not self._gate.is_set():
                await self._gate.wait()
            attempts += 1
            started = self._runner.clock()
            try:
                reply = await self._caller.call(sent, call_id=identity, timeout=remaining)
            except CallFailed as error:
                failure = replace(error.failure, attempts=attempts)
                if not failure.retryable:
                    raise CallFailed(failure) from error
                if failure.origin == "transport":
                    # The call was lost, not slow: its clock starts again. A
                    # row that keeps taking its system down must end, though.
                    lost += 1
                    if lost > _MAX_LOST_CALLS:
                        raise CallFailed(failure) from error
                    self._close_gate(failure.message)
                    await asyncio.sleep(_backoff(lost, 0.02, 2.0))
                    continue
                if failure.reason == "RESOURCE_EXHAUSTED":
                    self._limit.exhausted()
                pause = error.retry_delay or _backoff(attempts, 0.1, 5.0)
                remaining -= self._runner.clock() - started + pause
                if remaining <= 0:
                    raise CallFailed(failure) from error
                await asyncio.sleep(pause)
            else:
                self._limit.succeeded()
                return reply, attempts

    def _close_gate(self, reason: str) -> None:
        if self._reconnecting is None or self._reconnecting.done():
            self._gate.clear()
            self._reconnecting = asyncio.create_task(self._reconnect(reason))
            self._reconnecting.add_done_callback(self._reconnected)

    async def _reconnect(self, reason: str) -> None:
        """Wait for the system to come back, at most as long as the plan allows."""
        since = self._runner.clock()
        announced = False
        while not await self._caller.wait_connected(_WAIT_BEFORE_WAITING_S):
            if not announced:
                self._runner.set_waiting(self.name, f'system "{self.name}" is away: {reason}')
                announced = True
            if self._runner.clock() - since > self._plan.wait_timeout:
                raise RunFailed(
                    Failure(
                        "transport",
                        "SYSTEM_GONE",
                        f'system "{self.name}" stayed away for {self._plan.wait_timeout:g}s: '
                        f"{reason}. Start it, then: cbench resume {self._plan.run_id}",
                    )
                )
            # A caller that answers at once must not turn this into a busy loop.
            await asyncio.sleep(0.05)
        if announced:
            self._runner.set_waiting(self.name, None)
        self._gate.set()

    def _reconnected(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or task.exception() is None:
            return
        error = task.exception()
        # A worker must fall with the reason; one that waits for work or for
        # the gate is woken to do so.
        self._caller = _GoneCaller(self._caller, error)  # type: ignore[arg-type]
        self._gate.set()


class _GoneCaller:
    """Stands in for a system that stayed away: every call ends the run."""

    def __init__(self, caller: Caller, error: RunFailed) -> None:
        self.description = caller.description
        self._caller = caller
        self._error = error

    async def call(self, example: Example, *, call_id: str, timeout: float) -> Reply:
        raise self._error

    async def wait_connected(self, timeout: float) -> bool:
        return True

    async def close(self) -> None:
        await self._caller.close()


def text_size(example: Mapping[str, Any]) -> int:
    """Estimate the bytes an example holds, cheaply: its texts, one level of lists deep."""
    size = 0
    for value in example.values():
        if isinstance(value, str | bytes):
            size += len(value)
        elif isinstance(value, list):
            size += sum(len(item) if isinstance(item, str) else 64 for item in value)
        else:
            size += 16
    return size


def _primary_score(wanted: str, scores: Mapping[str, float]) -> str:
    """Name the score that counts: the dataset's own, else retention, else the first."""
    for name in (wanted, "answer_retained"):
        if name in scores:
            return name
    return next(iter(scores), "")


def _carried(processed: Example, original: Example) -> tuple[str, ...]:
    """Name the texts a system passed on as they were."""
    return tuple(
        [
            name
            for name, value in processed.items()
            if isinstance(value, str) and original.get(name) == value
        ]
    )


def _usage_metadata(usage: Mapping[str, Any] | None) -> dict[str, Any]:
    if not usage:
        return {}
    return {
        name: usage.get(name) or 0
        for name in ("prompt_tokens", "completion_tokens", "total_tokens")
    }


def _backoff(attempt: int, first: float, most: float) -> float:
    """Grow the pause with every attempt, with jitter so that callers spread out."""
    return min(most, first * float(2 ** min(attempt - 1, 16))) * random.uniform(0.5, 1.0)
