"""Python objects as systems: calls to `process`, on the event loop or in threads of a crew.

Systems get copies and their answers are copied, so that nothing they keep and
change later reaches another system or a row.
"""

import asyncio
import copy
import inspect
import time
import traceback
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from cbench_server.clocks.standstill import was_stopped
from cbench_server.contract import info_of
from cbench_server.errors import CallFailed
from cbench_server.limits import LONG_TEXT
from cbench_server.results import Failure
from cbench_server.systems.caller import (
    Answer,
    Answered,
    Call,
    CallTasks,
    Failed,
    Process,
    SystemDescription,
    texts_carried,
)
from cbench_server.systems.controls import TruncateHead, TruncateTail
from cbench_server.systems.crew import Crew
from cbench_server.systems.lead import Lead
from cbench_server.types import Example, System

# Calls queued for the threads of a crew, beyond those they work on.
AHEAD = 64
INSTRUCTION = "instruction"
_MAX_MESSAGE = 1000
_MAX_TRACE = 8000
_ATOMS = frozenset({str, int, float, bool, bytes, type(None)})


class Attempt:
    """One call of one Python method: what to run, and whether that is a coroutine."""

    __slots__ = ("is_async", "run")

    def __init__(self, run: Callable[[], Any], is_async: bool) -> None:
        self.run = run
        self.is_async = is_async


class ObjectCaller:
    """What callers of Python objects share: coroutines on the loop, all else in a crew.

    Subclasses say what to run for a call. With `inline`, which is for systems
    that compute quickly and wait for nothing, short examples are processed on
    the loop itself.
    """

    era = ""
    """Always the same: the object lives as long as the run."""
    ahead = AHEAD
    capacity: int | None = None
    replicas = None

    def __init__(
        self, description: SystemDescription, *, workers: int, inline: bool = False
    ) -> None:
        self.description = description
        self._inline = inline
        self._crew = Crew(workers, description.name)
        self._tasks = CallTasks()
        self._given_up: set[Call] = set()

    def attempt(self, call: Call) -> Attempt:
        """Return what to run for a call; running it gives its Answer or raises CallFailed."""
        raise NotImplementedError

    def start_many(
        self, calls: Sequence[Call], timeout: float, answered: Answered, failed: Failed
    ) -> None:
        """See Caller."""
        loop = asyncio.get_running_loop()
        threaded: list[tuple[Call, Callable[[], Answer]]] = []
        inline: list[tuple[Call, Callable[[], Answer]]] = []

        def ended(pairs: list[tuple[Any, Any]]) -> None:
            self._sort(pairs, answered, failed)

        for call in calls:
            try:
                attempt = self.attempt(call)
            except CallFailed as error:
                loop.call_soon(ended, [(call, error)])
                continue
            if attempt.is_async:
                work = within(timeout, attempt.run, self.description.name)
                self._tasks.start(call, work, answered, failed)
            elif self._inline and _is_short(call):
                inline.append((call, attempt.run))
            else:
                threaded.append((call, attempt.run))
        if threaded:
            self._crew.submit(threaded, timeout, ended)
        if inline:
            loop.call_soon(lambda: ended([(call, _outcome(run)) for call, run in inline]))

    def _sort(self, pairs: list[tuple[Any, Any]], answered: Answered, failed: Failed) -> None:
        answers = []
        for call, outcome in pairs:
            if call in self._given_up:
                self._given_up.discard(call)
            elif isinstance(outcome, CallFailed):
                failed(call, outcome)
            else:
                answers.append(outcome)
        if answers:
            answered(answers)

    def widen(self, calls: int) -> None:
        """See Caller."""
        self._crew.resize(calls)

    def give_up(self, call: Call) -> None:
        """Forget a call; a thread that is at work on it ends when the call returns."""
        if not self._tasks.give_up(call):
            self._given_up.add(call)

    async def wait_connected(self, timeout: float) -> bool:
        """Return True: what is in the process is there."""
        return True

    async def close(self) -> None:
        """Let the threads go, and what still runs on the loop."""
        self._crew.close()
        self._tasks.close()


class InProcessCaller(ObjectCaller):
    """Calls any Python object with `name` and `process`."""

    def __init__(
        self,
        system: System,
        *,
        workers: int = 64,
        inline: bool = False,
        name: str = "",
        location: str = "in-process",
    ) -> None:
        # Taken once: a system that renames itself does not split its rows.
        said = info_of(system)
        description = SystemDescription(
            name=name or system.name,
            version=said.version,
            description=said.description,
            max_concurrency=said.max_concurrency,
            location=location,
        )
        super().__init__(description, workers=workers, inline=inline)
        self._system = system
        self._process, self._is_async = _method(system, "process")
        self._converse, self._converses_async = _method(system, "process_conversation")
        if self._is_async:
            # A coroutine runs as soon as it is started: the crew, which queues, has no part in it.
            self.ahead = 0
        self._told = {
            method for method in (self._process, self._converse) if takes(method, INSTRUCTION)
        }

    @property
    def takes_instruction(self) -> bool:
        """Whether the system is told what the dataset asks of whoever answers."""
        return bool(self._told)

    def attempt(self, call: Call) -> Attempt:
        """See ObjectCaller."""
        work = call.work
        assert isinstance(work, Process)
        example = work.example
        if self._converse is not None and example.get("multi_turn") and "turns" in example:
            return self._attempt(call, self._converse, self._converses_async, is_talk=True)
        return self._attempt(call, self._process, self._is_async, is_talk=False)

    def _attempt(self, call: Call, method: Any, is_async: bool, *, is_talk: bool) -> Attempt:
        work: Any = call.work
        told = {INSTRUCTION: work.instruction} if method in self._told else {}

        def run() -> Answer:
            visible = copy_plain(work.visible)
            given = visible["turns"] if is_talk else visible
            started = time.perf_counter()
            with exceptions_as_failures():
                returned = method(given, **told)
            taken = time.perf_counter() - started if self.description.has_times else 0.0
            return _answer(call, is_talk, self._with_summary(work, returned), taken)

        async def arun() -> Answer:
            visible = copy_plain(work.visible)
            given = visible["turns"] if is_talk else visible
            started = time.perf_counter()
            with exceptions_as_failures():
                returned = await method(given, **told)
            return _answer(call, is_talk, returned, time.perf_counter() - started)

        return Attempt(arun if is_async else run, is_async)

    def _with_summary(self, work: Process, returned: Any) -> Any:
        """Let what an end of the text keeps be its answer where that is a summary."""
        if work.is_summary and isinstance(self._system, TruncateHead | TruncateTail | Lead):
            return {**returned, "response": returned["context"]}
        return returned

    async def close(self) -> None:
        """Close the system's connections on this loop too, if it keeps any; it stays usable."""
        await super().close()
        close_connections = getattr(self._system, "close_connections", None)
        if close_connections is not None:
            await close_connections()


def _method(system: Any, name: str) -> tuple[Callable[..., Any] | None, bool]:
    """Return a method, or its awaitable twin, and whether it is awaited."""
    twin = getattr(system, f"a{name}", None)
    method = twin or getattr(system, name, None)
    return method, twin is not None or inspect.iscoroutinefunction(method)


def takes(method: Callable[..., Any] | None, name: str) -> bool:
    """Whether a method has a parameter of that name."""
    if method is None:
        return False
    try:
        return name in inspect.signature(method).parameters
    except (TypeError, ValueError):
        return False


def _is_short(call: Call) -> bool:
    work = call.work
    return isinstance(work, Process) and (len(_text(work.example.get("context"))) < LONG_TEXT)


def _outcome(run: Callable[[], Answer]) -> Answer | CallFailed:
    try:
        return run()
    except CallFailed as error:
        return error


def _answer(call: Call, is_talk: bool, returned: Any, latency: float) -> Answer:
    work: Any = call.work
    try:
        returned = copy_plain(returned)
    except Exception as error:
        message = f"the system returned what cannot be copied: {_described(error)}"
        raise CallFailed(Failure("system", "BAD_RETURN", message)) from error
    if is_talk:
        returned = conversation_result(copy_plain(work.visible), returned)
    if not isinstance(returned, dict):
        message = f"process returned {type(returned).__name__}; it must return a dict"
        raise CallFailed(Failure("system", "BAD_RETURN", message))
    usage = returned.get("api_usage")
    usage = usage if isinstance(usage, dict) and usage else None
    carried = texts_carried(returned, work.example)
    return Answer(call, returned, latency, usage, carried, handler_seconds=latency or None)


def conversation_result(example: Example, replies: Any) -> Example:
    """Add the replies to an example: the last one is its `response`."""
    if not isinstance(replies, list) or not all(isinstance(reply, dict) for reply in replies):
        message = (
            f"process_conversation returned {type(replies).__name__}; it must return a list "
            "with one dict for each user turn"
        )
        raise CallFailed(Failure("system", "BAD_RETURN", message))
    contents = [_text(reply.get("content")) for reply in replies]
    response = contents[-1] if contents else ""
    processed = {**example, "response": response, "turn_responses": contents}
    if replies and replies[-1].get("api_usage"):
        processed["api_usage"] = replies[-1]["api_usage"]
    return processed


def copy_plain(value: Any) -> Any:
    """Copy dicts and lists all the way down; several times faster than deepcopy."""
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind is dict:
        return {
            key: item if type(item) in _ATOMS else copy_plain(item) for key, item in value.items()
        }
    if kind is list:
        return [copy_plain(item) for item in value]
    return copy.deepcopy(value)


async def within(
    timeout: float, run: Callable[[], Coroutine[Any, Any, Answer]], name: str
) -> Answer:
    """Wait for an answer; raise CallFailed if system `name` is late or cancels its own call."""
    answer = asyncio.ensure_future(run())
    # Not asyncio.timeout: it would wait for a system that ignores being cancelled.
    try:
        loop, is_due = asyncio.get_running_loop(), False
        while not (answer.done() or is_due):
            due = loop.time() + timeout
            await asyncio.wait({answer}, timeout=timeout)
            is_due = not was_stopped(loop.time() - due)
    except asyncio.CancelledError:
        _abandon(answer)
        raise
    if not answer.done():
        _abandon(answer)
        message = f'system "{name}" did not answer within {timeout:g}s'
        raise CallFailed(Failure("system", "DEADLINE_EXCEEDED", message))
    if answer.cancelled():
        message = "CancelledError: the system cancelled its own call"
        raise CallFailed(Failure("system", "EXCEPTION", message))
    return answer.result()


# Exceptions are turned where they arise: a StopIteration cannot cross a future
# (its waiter would never wake), and a SystemExit would stop the event loop.
@contextmanager
def exceptions_as_failures() -> Iterator[None]:
    """Turn what a system raises into CallFailed."""
    try:
        yield
    except CallFailed:
        raise
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        trace = "".join(traceback.format_exception(error))[-_MAX_TRACE:]
        failure = Failure("system", "EXCEPTION", _described(error), stack_trace=trace)
        raise CallFailed(failure) from error


def _described(error: BaseException) -> str:
    text = "".join(traceback.format_exception_only(error)).strip()
    return text if len(text) <= _MAX_MESSAGE else text[:_MAX_MESSAGE] + "…"


def _text(content: object) -> str:
    return "" if content is None else str(content)


def _abandon(answer: "asyncio.Future[Answer]") -> None:
    """Ask it to stop, and take its exception so that it is not logged."""
    answer.cancel()
    answer.add_done_callback(lambda done: done.cancelled() or done.exception())
