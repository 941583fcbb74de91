"""The candidate's side: runs the judged program and answers calls with plain data.

Nothing here is trusted. The program shares this interpreter and may change
all of it; what comes out of the socket is judged on the other side.
"""

import builtins
import operator
import os
import socket
import sys
import threading
import types
from collections.abc import Callable
from typing import Any, cast

from cbench_server.sandbox.assembly import assemble
from cbench_server.sandbox.errors import decode_error, encode_error
from cbench_server.sandbox.values import MUTABLE, decode, encode
from cbench_server.sandbox.wire import CALCULATING, CONTAINING, ORDERING, Message, receive, send

_OPERATIONS: dict[str, Callable[..., Any]] = {
    **{each.__name__: each for each in (len, str, repr, iter, hash, bool, reversed)},
    **{
        name: getattr(operator, f"__{name}__")
        for name in (*CONTAINING, "eq", *ORDERING, *CALCULATING)
    },
    "get": getattr,
    "set": setattr,
    "delete": delattr,
    "enter": lambda value: type(value).__enter__(value),
    "exit": lambda value: type(value).__exit__(value, None, None, None),
    "isinstance": lambda kind, value: isinstance(value, kind),
    "issubclass": lambda kind, value: issubclass(value, kind),
}
_MAX_ECHO = 1 << 18


def serve(connection: socket.socket) -> None:
    """Take a program, run it, and answer until the tester has enough."""
    _, descriptors, _, _ = socket.recv_fds(connection, 1, 1)
    for standard in (1, 2):
        os.dup2(descriptors[0], standard)
    os.close(descriptors[0])
    descriptor = connection.fileno()
    job = receive(descriptor)
    program = assemble(job["prompt"], job["response"], job["wanted"])
    if program is None:
        send(descriptor, {"not_python": True})
        return
    candidate = _Candidate(descriptor)
    try:
        if job["setup"]:
            exec(compile(job["setup"], "setup.py", "exec", dont_inherit=True), candidate.names)
        exec(program, candidate.names)
    except BaseException as error:
        candidate.reply({"error": encode_error(error)})
        return
    candidate.reply({"ready": True})
    while True:
        candidate.answer(receive(descriptor))


class _Echo:
    """Standard output that also remembers what was written, for tests that look at it."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._texts: list[str] = []
        self._size = 0

    def write(self, text: str) -> int:
        if self._size < _MAX_ECHO and isinstance(text, str):
            self._texts.append(text)
            self._size += len(text)
        return int(self._stream.write(text))

    def take(self) -> str:
        self._stream.flush()
        if not self._texts:
            return ""
        text = "".join(self._texts)[:_MAX_ECHO]
        self._texts.clear()
        self._size = 0
        return text

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Candidate:
    """The program's module, the objects it has handed out, and the way to the tester."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._handles: dict[int, Any] = {}
        self._numbers: dict[int, int] = {}
        self._lock = threading.RLock()
        self._module = types.ModuleType("solution")
        sys.modules["solution"] = self._module
        self.names = self._module.__dict__
        self._echo = _Echo(sys.stdout)
        sys.stdout = cast(Any, self._echo)

    def reply(self, message: Message) -> None:
        if text := self._echo.take():
            message["printed"] = text
        send(self._descriptor, message)

    def answer(self, message: Message) -> None:
        """Do what the tester asks and send the outcome."""
        try:
            outcome = self._outcome(message)
        except BaseException as error:
            outcome = self._failure(error)
        self.reply(outcome)

    def _outcome(self, message: Message) -> Message:
        ask = message["ask"]
        if ask == "name":
            return {"value": self._encode(self.names[message["name"]])}
        if ask == "ping":
            return {"value": None}
        target = self._handles[message["handle"]]
        arguments = [decode(each, self._decode_other) for each in message["arguments"]]
        if ask == "call":
            return self._call(target, arguments, message)
        if ask == "next":
            return self._next(target, message["count"])
        if ask == "await":
            # Imported late: it would double the memory that every fork has to copy.
            import asyncio

            return {"value": self._encode(asyncio.run(_awaiting(target)))}
        if ask == "state":
            return {"value": self._encode(_state(target))}
        return {"value": self._encode(_OPERATIONS[ask](target, *arguments))}

    def _call(self, target: Any, arguments: list[Any], message: Message) -> Message:
        named = {name: decode(each, self._decode_other) for name, each in message["named"].items()}
        result = target(*arguments, **named)
        everything = [*arguments, *named.values()]
        before = [*message["arguments"], *message["named"].values()]
        outcome: Message = {"value": None}
        changed = {}
        for index, argument in enumerate(everything):
            if type(argument) in MUTABLE:
                after = self._encode(argument)
                if after != before[index]:
                    changed[str(index)] = after
                if argument is result:
                    outcome["same"] = index
        if changed:
            outcome["changed"] = changed
        if "same" not in outcome:
            outcome["value"] = self._encode(result)
        return outcome

    def _next(self, iterator: Any, count: int) -> Message:
        items: list[Any] = []
        outcome: Message = {}
        try:
            while len(items) < count:
                items.append(self._encode(next(iterator)))
        except StopIteration:
            outcome["ended"] = True
        except BaseException as error:
            outcome = self._failure(error)
        return {**outcome, "items": items}

    def _failure(self, error: BaseException) -> Message:
        wire = encode_error(error)
        origin = getattr(error, "_origin", None)
        if isinstance(origin, int):
            wire["origin"] = origin
        elif type(error) is not getattr(builtins, type(error).__name__, None):
            wire["kind"] = self._encode_other(type(error))
        return {"error": wire}

    def _encode(self, value: Any) -> Any:
        limit = sys.getrecursionlimit()
        # Encoding takes two frames a level, which the program did not reckon with.
        sys.setrecursionlimit(max(limit, 5000))
        try:
            return encode(value, self._encode_other)
        finally:
            sys.setrecursionlimit(limit)

    def _encode_other(self, value: Any) -> Any:
        wire: dict[str, Any] = {"handle": self._number(value)}
        if isinstance(value, types.CoroutineType):
            wire["kind"] = "coroutine"
        elif isinstance(value, types.GeneratorType):
            wire["kind"] = "generator"
        elif isinstance(value, types.FunctionType):
            wire["kind"] = "function"
        elif isinstance(value, type) and issubclass(value, BaseException):
            wire["kind"] = "error"
            wire["bases"] = [each.__name__ for each in value.__mro__]
        return wire

    def _number(self, value: Any) -> int:
        number = self._numbers.setdefault(id(value), len(self._handles) + 1)
        self._handles[number] = value
        return number

    def _decode_other(self, wire: dict[str, Any]) -> Any:
        if "handle" in wire:
            return self._handles[wire["handle"]]
        if "function" in wire:
            return getattr(builtins, wire["function"])
        if "iterator" in wire:
            return self._pull(wire["iterator"])
        number = wire["callback"]

        def callback(*arguments: Any, **named: Any) -> Any:
            return self._call_back(number, arguments, named)

        return callback

    def _pull(self, number: int) -> Any:
        while True:
            try:
                item = self._call_back(number, (), {})
            except StopIteration:
                return
            yield item

    def _call_back(self, number: int, arguments: Any, named: dict[str, Any]) -> Any:
        message = {
            "callback": number,
            "arguments": [self._encode(each) for each in arguments],
            "named": {name: self._encode(each) for name, each in named.items()},
        }
        with self._lock:
            self.reply(message)
            while "ask" in (reply := receive(self._descriptor)):
                self.answer(reply)
        if "error" in reply:
            error = decode_error(reply["error"])
            error._origin = reply["error"]["origin"]  # type: ignore[attr-defined] # to find it again
            raise error
        return decode(reply["value"], self._decode_other)


async def _awaiting(value: Any) -> Any:
    return await value


def _state(value: Any) -> Any:
    """Return what an object consists of, if its class says when two are equal."""
    kind: Any = type(value)
    if kind.__eq__ is object.__eq__:
        return None
    slots = {name: getattr(value, name) for name in getattr(kind, "__slots__", ())}
    return [kind, {**slots, **getattr(value, "__dict__", {})}]
