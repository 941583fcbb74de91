"""Any Python object with `name` and `process`, as the runner sees it."""

import asyncio
import copy
import inspect
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any, TypeVar

from cbench_server.errors import CallFailed
from cbench_server.results import Failure
from cbench_server.systems.caller import Reply, SystemDescription
from cbench_server.types import Example, System

T = TypeVar("T")

INLINE_CHARACTERS = 64 * 1024
_MAX_MESSAGE = 1000
_MAX_TRACE = 8000
_ATOMS = frozenset({str, int, float, bool, bytes, type(None)})


class InProcessCaller:
    """Calls a Python system: on the loop if it is async, else in a thread of `executor`.

    Systems get copies and their answers are copied, so that nothing they keep
    and change later reaches another system or a row. With `inline`, which is
    for systems that compute quickly and wait for nothing, examples with a
    short context are processed on the loop itself.

    A thread cannot be stopped: a call that runs into its deadline fails its
    row, and keeps its thread until it returns.
    """

    def __init__(
        self,
        system: System,
        *,
        executor: Executor,
        inline: bool = False,
        location: str = "in-process",
    ) -> None:
        self._system = system
        self._executor = executor
        self._inline = inline
        # Taken once: a system that renames itself does not split its rows.
        self._description = SystemDescription(
            name=system.name,
            version=str(getattr(system, "version", "")),
            description=str(getattr(system, "description", "")),
            max_concurrency=getattr(system, "max_concurrency", None),
            location=location,
        )

    @property
    def description(self) -> SystemDescription:
        return self._description

    async def call(self, example: Example, *, call_id: str, timeout: float) -> Reply:
        """Make one attempt; raise CallFailed where the system raises, stalls or returns no dict."""
        work = _Work(self._system, example)
        if work.is_async:
            return await within(timeout, asyncio.ensure_future(work.arun()), self._description.name)
        if self._inline and len(_text(example.get("context"))) < INLINE_CHARACTERS:
            return work.run()
        loop = asyncio.get_running_loop()
        answer = loop.run_in_executor(self._executor, work.run)
        return await within(timeout, answer, self._description.name)

    async def wait_connected(self, timeout: float) -> bool:
        """Return True: what is in the process is there."""
        return True

    async def close(self) -> None:
        """Close the system's connections on this loop, if it keeps any; it stays usable."""
        close_connections = getattr(self._system, "close_connections", None)
        if close_connections is not None:
            await close_connections()


class _Work:
    """One call of one method, from the copy handed out to the reply."""

    def __init__(self, system: System, example: Example) -> None:
        self._example = example
        self._is_conversation = is_conversation(system, example)
        name = "process_conversation" if self._is_conversation else "process"
        twin = getattr(system, f"a{name}", None)
        self._method: Callable[[Any], Any] = twin or getattr(system, name)
        self.is_async = twin is not None or inspect.iscoroutinefunction(self._method)

    def run(self) -> Reply:
        given = self._copy()
        started = time.perf_counter()
        with exceptions_as_failures():
            returned = self._method(given)
        return self._reply(returned, time.perf_counter() - started)

    async def arun(self) -> Reply:
        given = self._copy()
        started = time.perf_counter()
        with exceptions_as_failures():
            returned = await self._method(given)
        return self._reply(returned, time.perf_counter() - started)

    def _copy(self) -> Any:
        return copy_plain(self._example["turns"] if self._is_conversation else self._example)

    def _reply(self, returned: Any, latency: float) -> Reply:
        try:
            returned = copy_plain(returned)
        except Exception as error:
            message = f"the system returned what cannot be copied: {_described(error)}"
            raise CallFailed(Failure("system", "BAD_RETURN", message)) from error
        if self._is_conversation:
            returned = conversation_result(copy_plain(self._example), returned)
        if not isinstance(returned, dict):
            message = f"process returned {type(returned).__name__}; it must return a dict"
            raise CallFailed(Failure("system", "BAD_RETURN", message))
        usage = returned.get("api_usage")
        return Reply(returned, latency, usage=usage if isinstance(usage, dict) and usage else None)


def is_conversation(system: System, example: Example) -> bool:
    """Tell whether the example is one the system answers turn by turn."""
    if not example.get("multi_turn") or "turns" not in example:
        return False
    return hasattr(system, "process_conversation") or hasattr(system, "aprocess_conversation")


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
        return {key: copy_plain(item) for key, item in value.items()}
    if kind is list:
        return [copy_plain(item) for item in value]
    return copy.deepcopy(value)


async def within(timeout: float, answer: asyncio.Future[T], name: str) -> T:
    """Wait for an answer; raise CallFailed if system `name` is late or cancels its own call."""
    # Not asyncio.timeout: it would wait for a system that ignores being cancelled.
    try:
        await asyncio.wait({answer}, timeout=timeout)
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
    except (Exception, SystemExit) as error:
        trace = "".join(traceback.format_exception(error))[-_MAX_TRACE:]
        failure = Failure("system", "EXCEPTION", _described(error), stack_trace=_valid(trace))
        raise CallFailed(failure) from error


def _described(error: BaseException) -> str:
    text = "".join(traceback.format_exception_only(error)).strip()
    return _valid(text if len(text) <= _MAX_MESSAGE else text[:_MAX_MESSAGE] + "…")


def _valid(text: str) -> str:
    # A message may quote bytes that were no UTF-8, which can be neither stored nor sent.
    return text.encode("utf-8", "replace").decode()


def _text(content: object) -> str:
    return "" if content is None else str(content)


def _abandon(answer: asyncio.Future[T]) -> None:
    """Stop caring: ask it to stop, and take its exception so that nobody logs it."""
    answer.cancel()
    answer.add_done_callback(lambda done: done.cancelled() or done.exception())
