"""Objects that a user offers: what each has to be, and how its methods are called."""

import functools
import inspect
import re
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from cbench_client.errors import NotServable, RemoteFailure
from cbench_client.host.calls import CurrentCall, current_call, enter_call
from cbench_client.host.declared import MethodOptions
from cbench_client.host.threads import ThreadPool

SYNC_CONCURRENCY = 32
ASYNC_CONCURRENCY = 256
_MAX_TRACE = 16_000
_PACKAGE = str(Path(__file__).parents[1])
_NONE: Mapping[str, Any] = {}
# How many arguments each method is given by position, and which it may name besides.
_ARGUMENTS: dict[str, tuple[int, frozenset[str]]] = {
    "process": (1, frozenset({"instruction"})),
    "process_conversation": (1, frozenset({"example", "instruction"})),
    "score": (2, frozenset()),
    "assess": (2, frozenset()),
    "reset": (0, frozenset({"scope"})),
    "ingest": (1, frozenset({"scope"})),
    "query": (1, frozenset({"scope", "budget", "asked_at", "instruction"})),
}


class UserMethod:
    """A method of a user's object, synchronous or not, called the same way.

    `async def NAME` and `aNAME` are awaited; anything else runs in a thread.
    """

    def __init__(self, owner: Any, name: str, pool: ThreadPool) -> None:
        self._call = _method(owner, name)
        self.is_async = _has_twin(owner, name) or is_async(self._call)
        self._pool = pool
        self._keywords = named_parameters(self._call)
        self.options = method_options(owner, name)

    def accepts(self, keyword: str) -> bool:
        """Whether the method names a parameter `keyword`."""
        return keyword in self._keywords

    def __call__(
        self, *args: Any, arguments: Mapping[str, Any] = _NONE, **offered: Any
    ) -> Awaitable[Any]:
        """Call with `args` and `arguments`, and with those of `offered` that the method names."""
        call = self._bound(args, arguments, offered)
        return call() if self.is_async else run_in_thread(self._pool, call)

    async def timed(
        self, reply: Any, *args: Any, arguments: Mapping[str, Any] = _NONE, **offered: Any
    ) -> Any:
        """Call likewise, and say in the reply what that took, without waiting for a thread."""
        call = self._bound(args, arguments, offered)
        if self.is_async:
            started = time.perf_counter_ns()
            returned = await call()
            taken = time.perf_counter_ns() - started
        else:
            returned, taken = await run_in_thread(self._pool, functools.partial(_timed, call))
        note_time(reply, taken)
        return returned

    def in_thread(
        self, *args: Any, arguments: Mapping[str, Any] = _NONE, **offered: Any
    ) -> Callable[[], tuple[Any, int]]:
        """Return the same call for a thread, with the nanoseconds it took as second result."""
        return functools.partial(_timed, self._bound(args, arguments, offered))

    def _bound(
        self, args: tuple[Any, ...], options: Mapping[str, Any], offered: Mapping[str, Any]
    ) -> Callable[[], Any]:
        kwargs = {key: value for key, value in offered.items() if key in self._keywords}
        return functools.partial(self._call, *args, **kwargs, **options)


def method_options(owner: Any, name: str) -> MethodOptions:
    """Return the options of a method of an object, or of a class whose objects have it."""
    positional, known = _ARGUMENTS[name]
    is_unbound = inspect.isclass(owner) and inspect.isfunction(_method(owner, name))
    return MethodOptions(_method(owner, name), known, positional + is_unbound)


def _method(owner: Any, name: str) -> Callable[..., Any]:
    """Return the method, in the form that is awaited where there is one."""
    found: Callable[..., Any] = getattr(owner, f"a{name}" if _has_twin(owner, name) else name)
    return found


def _has_twin(owner: Any, name: str) -> bool:
    return callable(getattr(owner, f"a{name}", None))


def note_time(reply: Any, nanoseconds: int) -> None:
    """Say in a reply what the user's code took."""
    reply.handler_time.seconds, reply.handler_time.nanos = divmod(nanoseconds, 10**9)


def _timed(call: Callable[[], Any]) -> tuple[Any, int]:
    """Call, and return the nanoseconds it took, too."""
    started = time.perf_counter_ns()
    returned = call()
    return returned, time.perf_counter_ns() - started


def run_in_thread(pool: ThreadPool, function: Callable[[], Any]) -> Awaitable[Any]:
    """Run user code in a thread that knows the current call."""
    return pool.run(functools.partial(inside, current_call(), function))


def inside(call: CurrentCall, function: Callable[[], Any]) -> Any:
    """Run `function` as a part of `call`."""
    enter_call(call)
    return function()


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling `function` gives something to await."""
    # An object that is called like a function hides its method in its class.
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        vars(type(function)).get("__call__")
    )


def named_parameters(function: Callable[..., Any]) -> frozenset[str]:
    """Return the names that may be passed as keywords."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return frozenset()
    return frozenset(
        parameter.name
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    )


def offers(owner: Any, name: str) -> bool:
    """Whether an object has the method, in either form."""
    return callable(getattr(owner, name, None)) or callable(getattr(owner, f"a{name}", None))


def system_name(owner: Any) -> str:
    """Return the name of a system, or refuse it."""
    name = getattr(owner, "name", None)
    if not isinstance(name, str) or not name or len(name) > 200 or "/" in name:
        raise NotServable(
            f"{_kind_of(owner)} has the name {name!r}; a name is 1 to 200 characters without '/'."
        )
    return name


def evaluator_name(owner: Any) -> str:
    """Return the name of an evaluator, or refuse it."""
    name = getattr(owner, "name", None)
    if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9-]{1,200}", name):
        raise NotServable(
            f"{_kind_of(owner)} has the name {name!r}; an evaluator's name is made of lowercase "
            "letters, digits and dashes."
        )
    return name


def described(owner: Any) -> str:
    """Return the description given, else the first line of the docstring."""
    text = getattr(owner, "description", None) or (type(owner).__doc__ or "").strip()
    return str(text).partition("\n")[0]


def stated_limit(owner: Any, default: int | None) -> int | None:
    """Return how many calls may run at once, None where that is not said."""
    limit = getattr(owner, "max_concurrency", None)
    limit = default if limit is None else limit
    if limit is not None and (not isinstance(limit, int) or limit < 1):
        raise NotServable(f"max_concurrency is {limit!r}; it must be a whole number from 1.")
    return limit


def _kind_of(owner: Any) -> str:
    return f"the class {owner.__name__}" if inspect.isclass(owner) else f"a {type(owner).__name__}"


def bad_return(method: str, value: Any, wanted: str, origin: str = "system") -> NoReturn:
    """Refuse what user code returned."""
    if inspect.iscoroutine(value):
        value.close()
    raise RemoteFailure(
        f"{method} returned {type(value).__name__}, not {wanted}",
        origin=origin,
        reason="BAD_RETURN",
    )


def failure_of(error: BaseException, origin: str) -> RemoteFailure:
    """Turn what user code raised into a failure with the user's part of the stack."""
    if isinstance(error, RemoteFailure):
        return error
    try:
        text = str(error)
    except Exception:
        text = "its message cannot be shown"
    name = type(error).__name__
    return RemoteFailure(
        f"{name}: {text}" if text else name,
        origin=origin,
        reason="EXCEPTION",
        stack_trace=_user_stack(error),
    )


def _user_stack(error: BaseException) -> str:
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(_PACKAGE):
        frames = frames.tb_next
    text = "".join(traceback.format_exception(type(error), error, frames))
    # The end says what happened; the beginning is the same for every call.
    return text[-_MAX_TRACE:]


def part(returned: Any, name: str) -> Any:
    """Read a named part of a dict or an object, None where it is absent."""
    if isinstance(returned, Mapping):
        return returned.get(name)
    return getattr(returned, name, None)
