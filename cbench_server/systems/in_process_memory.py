"""Python objects as memory systems, with as many scopes as each can hold.

Most objects have one state, and conversations have a scope each. In this order:

- an object with `with_scope(scope)`, such as RemoteMemorySystem, is asked for a view of each;
- methods that name a `scope` parameter are handed it;
- a class, or a function that makes an object, is called once for each scope;
- any other object serves one conversation after another, with one call at a time.
"""

import functools
import inspect
import time
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from cbench_server.contract import info_of
from cbench_server.errors import CallFailed, InvalidInput
from cbench_server.results import Failure
from cbench_server.systems.caller import (
    Answer,
    Call,
    Ingest,
    Query,
    Recall,
    Reset,
    SystemDescription,
)
from cbench_server.systems.in_process import (
    INSTRUCTION,
    Attempt,
    ObjectCaller,
    copy_plain,
    exceptions_as_failures,
    takes,
)
from cbench_server.types import MemorySystem

_METHODS = ("reset", "ingest", "query")


class InProcessMemoryCaller(ObjectCaller):
    """Calls any Python object with `name`, `reset`, `ingest` and `query`."""

    ahead = 0
    """A scope's calls follow one another."""

    def __init__(
        self,
        system: MemorySystem | Callable[[], MemorySystem],
        *,
        workers: int = 64,
        name: str = "",
        location: str = "in-process",
    ) -> None:
        self._system: Any = system
        self._makes_objects = is_factory(system)
        self._made: dict[str, Any] = {}
        sample: Any = system() if self._makes_objects else system  # type: ignore[operator]
        missing = [each for each in _METHODS if _method(sample, each) is None]
        if missing:
            raise InvalidInput(
                f"{type(sample).__name__} is not a memory system: it lacks {', '.join(missing)}."
            )
        said = info_of(sample)
        description = SystemDescription(
            name=name or sample.name,
            version=said.version,
            description=said.description,
            max_concurrency=said.max_concurrency if self._is_shareable(sample) else 1,
            location=location,
        )
        super().__init__(description, workers=workers)
        self.takes_instruction = takes(_method(sample, "query"), INSTRUCTION)
        """Whether it is told what the dataset asks of whoever answers."""

    def _is_shareable(self, sample: Any) -> bool:
        if self._makes_objects or hasattr(sample, "with_scope"):
            return True
        return all("scope" in _keywords(_method(sample, name)) for name in _METHODS)

    def attempt(self, call: Call) -> Attempt:
        """See ObjectCaller."""
        work = call.work
        if isinstance(work, Reset):
            if not self._makes_objects:
                return self._attempt(call, "reset", work.scope, (), {}, _nothing)
            # An object made for a scope is dropped with it.
            self._made.pop(work.scope, None)
            return Attempt(lambda: Answer(call, {}, 0.0), is_async=False)
        if isinstance(work, Ingest):
            turns = (copy_plain(work.turns),)
            return self._attempt(call, "ingest", work.scope, turns, {}, _ingested)
        assert isinstance(work, Query)
        # These go to a method that names them.
        offered = {
            "budget": work.budget,
            "asked_at": work.asked_at or None,
            INSTRUCTION: work.instruction,
        }
        return self._attempt(call, "query", work.scope, (work.question,), offered, _answered)

    async def close(self) -> None:
        """Drop the objects that were made, and the loop's connections of one that keeps any."""
        await super().close()
        self._made.clear()
        if hasattr(self._system, "with_scope") and hasattr(self._system, "aclose"):
            await self._system.aclose()

    def _attempt(
        self,
        call: Call,
        name: str,
        scope: str,
        arguments: tuple[Any, ...],
        offered: Mapping[str, Any],
        read: Callable[[Call, Any, Any, float], Answer],
    ) -> Attempt:
        owner = self._owner(scope)
        method = _method(owner, name)
        assert method is not None
        accepted = _keywords(method)
        given = {**offered, "scope": scope}
        bound = functools.partial(
            method, *arguments, **{key: given[key] for key in given if key in accepted}
        )

        def run() -> Answer:
            started = time.perf_counter()
            with exceptions_as_failures():
                returned = bound()
                return read(call, owner, returned, time.perf_counter() - started)

        async def arun() -> Answer:
            started = time.perf_counter()
            with exceptions_as_failures():
                returned = await bound()
                return read(call, owner, returned, time.perf_counter() - started)

        is_async = inspect.iscoroutinefunction(method)
        return Attempt(arun if is_async else run, is_async)

    def _owner(self, scope: str) -> Any:
        if self._makes_objects:
            if scope not in self._made:
                with exceptions_as_failures():
                    self._made[scope] = self._system()
            return self._made[scope]
        if hasattr(self._system, "with_scope"):
            # A view for each call: what one call leaves in it belongs to no other.
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


def _nothing(call: Call, owner: Any, returned: Any, seconds: float) -> Answer:
    return Answer(call, {}, seconds, handler_seconds=seconds)


def _ingested(call: Call, owner: Any, returned: Any, seconds: float) -> Answer:
    recall = Recall(stored_bytes=_count(_part(returned, "stored_bytes")))
    usage = _plain_dict(_part(returned, "usage"))
    return Answer(call, {}, seconds, usage, recall=recall, handler_seconds=seconds)


def _answered(call: Call, owner: Any, returned: Any, seconds: float) -> Answer:
    """Read an answer: text, or a dict or object with a `response`, a `context` or both."""
    said = getattr(owner, "last_reply", None) if isinstance(returned, str) else returned
    if isinstance(returned, str) and not said:
        said = {"response": returned, "context_tokens": getattr(owner, "last_context_tokens", None)}
    response, context = _part(said, "response"), _part(said, "context")
    for text in (response, context):
        if text is not None and not isinstance(text, str):
            _refuse(returned)
    metadata = _plain_dict(_part(said, "metadata")) or {}
    if (ranked := _part(said, "retrieved")) is not None:
        metadata["retrieved"] = ranked
    retrieved = taken_passages(metadata)
    if response is None and context is None and retrieved is None:
        _refuse(returned)
    retrieval = _part(said, "retrieval_seconds")
    return Answer(
        call,
        # A retriever over the wire says nothing, which arrives as an empty text.
        query_output(
            None if response == "" and context is not None else response, context, retrieved
        ),
        seconds,
        _plain_dict(_part(said, "usage") or _part(said, "api_usage")),
        handler_seconds=seconds,
        recall=Recall(
            stored_bytes=_count(_part(said, "stored_bytes")),
            context_tokens=_count(_part(said, "context_tokens")),
            retrieval_time=float(retrieval) if isinstance(retrieval, int | float) else None,
            metadata=metadata,
        ),
    )


def query_output(
    response: str | None, context: str | None, retrieved: list[str] | None = None
) -> dict[str, Any]:
    """Give what a memory system answered with, without what it left to others.

    Passages alone are its context.
    """
    if retrieved is not None and context is None:
        context = "\n\n".join(retrieved)
    said = {"response": response, "context": context, "retrieved": retrieved}
    return {name: value for name, value in said.items() if value is not None}


def taken_passages(metadata: dict[str, Any]) -> list[str] | None:
    """Take out the passages that a system names in `retrieved`, the best first."""
    passages = metadata.get("retrieved")
    if not isinstance(passages, list | tuple) or not all(isinstance(p, str) for p in passages):
        return None
    del metadata["retrieved"]
    return list(passages)


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
