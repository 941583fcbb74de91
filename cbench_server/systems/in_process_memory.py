"""Any Python object that remembers, as the runner sees it, with as many scopes as it can hold.

Most objects have one state, and conversations have a scope each. In this order:

- an object with `with_scope(scope)`, such as RemoteMemorySystem, is asked for a view of each;
- methods that name a `scope` parameter are handed it;
- a class, or a function that makes an object, is called once for each scope;
- any other object serves one conversation after another, with one call at a time.
"""

import asyncio
import functools
import inspect
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor
from typing import Any, NoReturn, TypeVar

from cbench_server.errors import CallFailed, InvalidInput
from cbench_server.results import Failure
from cbench_server.systems.caller import SystemDescription
from cbench_server.systems.in_process import copy_plain, exceptions_as_failures, within
from cbench_server.systems.memory_caller import IngestReply, QueryReply, Question, Turn
from cbench_server.types import MemorySystem

_METHODS = ("reset", "ingest", "query")
T = TypeVar("T")


class InProcessMemoryCaller:
    """Calls a Python memory system: on the loop if it is async, else in a thread of `executor`."""

    def __init__(
        self,
        system: MemorySystem | Callable[[], MemorySystem],
        *,
        executor: Executor,
        location: str = "in-process",
    ) -> None:
        self._system: Any = system
        self._executor = executor
        self._makes_objects = is_factory(system)
        self._made: dict[str, Any] = {}
        sample: Any = system() if self._makes_objects else system  # type: ignore[operator]
        missing = [name for name in _METHODS if _method(sample, name) is None]
        if missing:
            raise InvalidInput(
                f"{type(sample).__name__} is no memory system: it lacks {', '.join(missing)}."
            )
        announced = getattr(sample, "max_concurrency", None)
        self._description = SystemDescription(
            name=sample.name,
            version=str(getattr(sample, "version", "") or ""),
            description=str(getattr(sample, "description", "") or ""),
            max_concurrency=announced if self._is_shareable(sample) else 1,
            location=location,
        )

    @property
    def description(self) -> SystemDescription:
        return self._description

    @property
    def era(self) -> str:
        """Always the same: the object lives as long as the run."""
        return ""

    def _is_shareable(self, sample: Any) -> bool:
        if self._makes_objects or hasattr(sample, "with_scope"):
            return True
        return all("scope" in _keywords(_method(sample, name)) for name in _METHODS)

    async def reset(self, scope: str, *, call_id: str, timeout: float) -> None:
        """Forget a scope; an object made for it is dropped."""
        if self._makes_objects:
            self._made.pop(scope, None)
        else:
            await self._call("reset", scope, (), {}, timeout, lambda owner, returned, seconds: None)

    async def ingest(
        self, scope: str, turns: list[Turn], *, call_id: str, timeout: float
    ) -> IngestReply:
        """Hand over copies of the turns."""
        return await self._call("ingest", scope, (copy_plain(turns),), {}, timeout, _ingested)

    async def query(
        self, scope: str, question: Question, *, call_id: str, timeout: float
    ) -> QueryReply:
        """Ask; `budget` and `asked_at` go to a method that names them."""
        offered = {"budget": question.budget, "asked_at": question.asked_at or None}
        return await self._call("query", scope, (question.text,), offered, timeout, _answered)

    async def wait_connected(self, timeout: float) -> bool:
        """Return True: what is in the process is there."""
        return True

    async def close(self) -> None:
        """Drop the objects that were made, and the loop's connections of one that keeps any."""
        self._made.clear()
        if hasattr(self._system, "with_scope") and hasattr(self._system, "aclose"):
            await self._system.aclose()

    async def _call(
        self,
        name: str,
        scope: str,
        arguments: tuple[Any, ...],
        offered: Mapping[str, Any],
        timeout: float,
        reply: Callable[[Any, Any, float], T],
    ) -> T:
        owner = self._owner(scope)
        method = _method(owner, name)
        assert method is not None
        accepted = _keywords(method)
        given = {**offered, "scope": scope}
        bound = functools.partial(
            method, *arguments, **{key: given[key] for key in given if key in accepted}
        )

        def run() -> T:
            started = time.perf_counter()
            with exceptions_as_failures():
                returned = bound()
                return reply(owner, returned, time.perf_counter() - started)

        async def arun() -> T:
            started = time.perf_counter()
            with exceptions_as_failures():
                returned = await bound()
                return reply(owner, returned, time.perf_counter() - started)

        work: Awaitable[T]
        if inspect.iscoroutinefunction(method):
            work = asyncio.ensure_future(arun())
        else:
            work = asyncio.get_running_loop().run_in_executor(self._executor, run)
        return await within(timeout, asyncio.ensure_future(work), self._description.name)

    def _owner(self, scope: str) -> Any:
        if self._makes_objects:
            if scope not in self._made:
                with exceptions_as_failures():
                    self._made[scope] = self._system()
            return self._made[scope]
        if hasattr(self._system, "with_scope"):
            # A view for each call: what one call leaves in it is no other's.
            return self._system.with_scope(scope)
        return self._system


def is_factory(system: Any) -> bool:
    """Whether something makes memory systems instead of being one."""
    return inspect.isclass(system) or (callable(system) and _method(system, "query") is None)


def _method(owner: Any, name: str) -> Callable[..., Any] | None:
    """Return a method of an object, preferably its awaitable twin."""
    twin = getattr(owner, f"a{name}", None)
    found = twin if callable(twin) else getattr(owner, name, None)
    return found if callable(found) else None


def _keywords(method: Callable[..., Any] | None) -> frozenset[str]:
    if method is None:
        return frozenset()
    try:
        return frozenset(inspect.signature(method).parameters)
    except (TypeError, ValueError):
        return frozenset()


def _ingested(owner: Any, returned: Any, seconds: float) -> IngestReply:
    usage = _part(returned, "usage")
    return IngestReply(seconds, _count(_part(returned, "stored_bytes")), _plain_dict(usage))


def _answered(owner: Any, returned: Any, seconds: float) -> QueryReply:
    """Read an answer: text, or a dict or object with a `response`, a `context` or both."""
    said = getattr(owner, "last_reply", None) if isinstance(returned, str) else returned
    if isinstance(returned, str) and not said:
        said = {"response": returned, "context_tokens": getattr(owner, "last_context_tokens", None)}
    response, context = _part(said, "response"), _part(said, "context")
    for text in (response, context):
        if text is not None and not isinstance(text, str):
            _refuse(returned)
    if response is None and context is None:
        _refuse(returned)
    retrieval = _part(said, "retrieval_seconds")
    return QueryReply(
        latency=seconds,
        # A retriever over the wire says nothing, which arrives as an empty text.
        response=None if response == "" and context is not None else response,
        context=context,
        context_tokens=_count(_part(said, "context_tokens")),
        stored_bytes=_count(_part(said, "stored_bytes")),
        metadata=_plain_dict(_part(said, "metadata")) or {},
        usage=_plain_dict(_part(said, "usage") or _part(said, "api_usage")),
        retrieval_time=float(retrieval) if isinstance(retrieval, int | float) else None,
    )


def _refuse(returned: Any) -> NoReturn:
    message = (
        f"query returned {type(returned).__name__}; it must return text, or a dict with a "
        '"response", a "context" or both'
    )
    raise CallFailed(Failure("system", "BAD_RETURN", message))


def _part(said: Any, name: str) -> Any:
    return said.get(name) if isinstance(said, Mapping) else getattr(said, name, None)


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _plain_dict(value: Any) -> dict[str, Any] | None:
    return copy_plain(dict(value)) if isinstance(value, Mapping) and value else None
