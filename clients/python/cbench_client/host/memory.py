"""A user's memory system, with as many scopes as the daemon asks for.

The wire has scopes; most Python objects have one state. There are three ways
to bridge that, in this order:

- methods that name a `scope` parameter are handed it;
- a class, or any function that makes an object, is called once per scope;
- a bare object serves one scope at a time, and says so to the second.

Within a scope `reset` and `ingest` run alone and queries run side by side,
except that a bare object never has two calls at once.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from cbench_client._gen.cbench.v1 import memory_pb2, system_pb2
from cbench_client.errors import NotServable, RemoteFailure
from cbench_client.host.adapters import Decoding, Encoding, decoded_options
from cbench_client.host.gate import Gate
from cbench_client.host.offers import (
    ASYNC_CONCURRENCY,
    SYNC_CONCURRENCY,
    UserMethod,
    bad_return,
    described,
    method_options,
    offers,
    part,
    run_in_thread,
    stated_limit,
    system_name,
)
from cbench_client.host.threads import ThreadPool
from cbench_client.messages import convert
from cbench_client.messages.options import DeclaredOptions, joined, options_to_proto

METHODS = ("reset", "ingest", "query")


class _Methods:
    """The three methods of one object."""

    def __init__(self, owner: Any, pool: ThreadPool) -> None:
        missing = [name for name in METHODS if not offers(owner, name)]
        if missing:
            raise NotServable(
                f"{type(owner).__name__} is not a memory system: it lacks {', '.join(missing)}."
            )
        self.reset, self.ingest, self.query = (UserMethod(owner, name, pool) for name in METHODS)

    @property
    def all(self) -> tuple[UserMethod, ...]:
        return self.reset, self.ingest, self.query


class _Scope:
    """What is known of one scope; `methods` is None until it is first used."""

    def __init__(self) -> None:
        self.gate = Gate()
        self.methods: _Methods | None = None
        self.ingested: dict[str, memory_pb2.IngestResponse] = {}


class MemoryAdapter:
    """A user's memory system."""

    origin = "system"
    threaded: Mapping[str, tuple[Any, Any]] = {}

    def __init__(self, system: Any, max_concurrency: int | None) -> None:
        factory = _is_factory(system)
        # A factory's product says what it is called, unless a class does.
        sample = system() if factory and not isinstance(getattr(system, "name", 0), str) else system
        self.name = system_name(sample)
        stated = stated_limit(sample, max_concurrency)
        self._pool = ThreadPool(stated or SYNC_CONCURRENCY, self.name)
        self.close = self._pool.close
        self._factory: Callable[[], Any] | None = system if factory else None
        self._shared = None if factory else _Methods(system, self._pool)
        methods = self._shared.all if self._shared else ()
        self._is_bare = not factory and not all(method.accepts("scope") for method in methods)
        is_async = bool(methods) and all(method.is_async for method in methods)
        self.limit = stated or (ASYNC_CONCURRENCY if is_async else SYNC_CONCURRENCY)
        self._scopes: dict[str, _Scope] = {}
        self.info = system_pb2.SystemInfo(
            name=self.name,
            version=str(getattr(sample, "version", None) or ""),
            description=_description(sample),
            max_concurrency=1 if self._is_bare else stated,
        )
        declared = _declared(sample)
        options_to_proto(declared, self.info.declared_options)
        self.answers = {"reset": self.reset, "ingest": self.ingest, "query": self.query}

    async def reset(
        self, request: memory_pb2.ResetRequest, reply: memory_pb2.ResetResponse
    ) -> None:
        """Forget a scope. A scope never used has nothing to forget."""
        if self._is_bare and self._other_scope(request.scope):
            return
        if self._factory is not None and request.scope not in self._scopes:
            return
        scope = self._scopes.setdefault(request.scope, _Scope())
        try:
            async with scope.gate.hold(exclusive=True):
                methods = await self._methods(scope)
                await methods.reset(scope=request.scope)
                scope.methods = None
                scope.ingested.clear()
        finally:
            if scope.gate.is_idle and scope.methods is None:
                self._scopes.pop(request.scope, None)

    async def ingest(
        self, request: memory_pb2.IngestRequest, reply: memory_pb2.IngestResponse
    ) -> None:
        """Remember turns, once for each call id."""
        with Decoding():
            turns = convert.turns_from_proto(request.turns)
        scope = self._scope(request.scope)
        async with scope.gate.hold(exclusive=True):
            if (earlier := scope.ingested.get(request.call_id)) is not None:
                reply.CopyFrom(earlier)
                return
            methods = await self._methods(scope)
            arguments = self._arguments(methods.ingest, request)
            returned = await methods.ingest.timed(
                reply, turns, arguments=arguments, scope=request.scope
            )
            with Encoding("ingest()"):
                _fill(reply, returned, ("stored_bytes",))
            if request.call_id:
                # A copy: the reply belongs to its sender.
                scope.ingested[request.call_id] = memory_pb2.IngestResponse()
                scope.ingested[request.call_id].CopyFrom(reply)

    async def query(
        self, request: memory_pb2.QueryRequest, reply: memory_pb2.QueryResponse
    ) -> None:
        """Answer from what a scope holds."""
        scope = self._scope(request.scope)
        async with scope.gate.hold(exclusive=self._is_bare):
            methods = await self._methods(scope)
            returned = await methods.query.timed(
                reply,
                request.question,
                arguments=self._arguments(methods.query, request),
                scope=request.scope,
                budget=request.budget if request.HasField("budget") else None,
                asked_at=request.asked_at or None,
                instruction=request.instruction,
            )
        with Encoding("query()"):
            if isinstance(returned, str):
                reply.response = returned
                return
            response, context = part(returned, "response"), part(returned, "context")
            retrieved = part(returned, "retrieved")
            if not any(isinstance(each, str | list) for each in (response, context, retrieved)):
                bad_return("query()", returned, "text, or something with a response or a context")
            reply.response = response or ""
            if context is not None:
                reply.context = context
            _fill(reply, returned, ("context_tokens", "stored_bytes"))
            metadata = part(returned, "metadata") or {}
            if retrieved is not None:
                metadata = {**metadata, "retrieved": list(retrieved)}
            convert.fields_to_proto(metadata, reply.metadata, "metadata.")
            seconds = part(returned, "retrieval_seconds")
            if seconds is not None:
                reply.retrieval_time.FromNanoseconds(round(seconds * 1e9))

    def _arguments(self, method: UserMethod, request: Any) -> dict[str, Any]:
        options = decoded_options(request.options)
        return method.options.arguments(options, f'memory system "{self.name}"', strict=False)

    def _scope(self, scope: str) -> _Scope:
        if self._is_bare and (other := self._other_scope(scope)):
            raise RemoteFailure(
                f'memory system "{self.name}" is one object with one state, which scope '
                f'"{other}" holds until it is reset. To serve many scopes pass the class '
                "instead of an object, or give its methods a `scope` parameter.",
                reason="FAILED_PRECONDITION",
            )
        return self._scopes.setdefault(scope, _Scope())

    def _other_scope(self, scope: str) -> str | None:
        return next((other for other in self._scopes if other != scope), None)

    async def _methods(self, scope: _Scope) -> _Methods:
        if scope.methods is None:
            if self._factory is None:
                scope.methods = self._shared
            else:
                made = await run_in_thread(self._pool, self._factory)
                # Two queries may be the first at once; one object must serve both.
                scope.methods = scope.methods or _Methods(made, self._pool)
        assert scope.methods is not None
        return scope.methods


def _declared(sample: Any) -> DeclaredOptions:
    """Return the options of `ingest` and `query`; those of a class are asked of its methods."""
    if not all(offers(sample, name) for name in ("ingest", "query")):
        return DeclaredOptions()
    return joined(method_options(sample, name).declared for name in ("ingest", "query"))


def _is_factory(system: Any) -> bool:
    return inspect.isclass(system) or (callable(system) and not offers(system, "query"))


def _description(sample: Any) -> str:
    if inspect.isclass(sample):
        return str(getattr(sample, "description", None) or sample.__doc__ or "").partition("\n")[0]
    return described(sample)


def _fill(reply: Any, returned: Any, counts: tuple[str, ...]) -> None:
    for name in counts:
        value = part(returned, name)
        if isinstance(value, int):
            setattr(reply, name, value)
    usage = part(returned, "usage") or part(returned, "api_usage")
    if isinstance(usage, Mapping):
        convert.usage_to_proto(usage, reply.usage)
