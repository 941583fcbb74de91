"""The tester's connection to its candidate: questions out, plain data or handles back."""

import builtins
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from cbench_server.sandbox.errors import decode_error, encode_error
from cbench_server.sandbox.remote import Remote
from cbench_server.sandbox.values import decode, encode
from cbench_server.sandbox.wire import Broken, Message, receive, send

_KINDS = {"generator": types.GeneratorType, "function": types.FunctionType}
# What forged or damaged messages lead to.
_DAMAGE = (Broken, OSError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError)


class CandidateLost(BaseException):
    """The candidate ended or broke the protocol; not an Exception, so that no test catches it."""


class Peer:
    """The connection to one candidate, and what has been seen of it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._callbacks: list[Callable[..., Any]] = []
        self._handles: dict[int, Any] = {}
        self._origins: list[BaseException] = []
        self.raised: BaseException | None = None
        """The last exception that came from the candidate."""
        self.lost = ""
        """Why there is no candidate any more; empty while there is one."""
        self.calls = 0
        self.asked_about_itself = False
        """Whether an assertion relied on the candidate's word about its own objects."""

    def ask(self, question: str, handle: Remote | None = None, *arguments: Any) -> Any:
        """Ask something and return the decoded value of the answer."""
        message: Message = {"ask": question, "arguments": [self.encode(each) for each in arguments]}
        if handle is not None:
            message["handle"] = handle.remote_number
        return self.decode(self.exchange(message).get("value"))

    def name(self, name: str) -> Any:
        """Return what the candidate's module has under a name; raises KeyError if nothing."""
        return self.decode(self.exchange({"ask": "name", "name": name}).get("value"))

    def exchange(self, message: Message) -> Message:
        """Send a message and return its answer, doing callbacks in between."""
        if self.lost:
            raise CandidateLost(self.lost)
        try:
            send(self._descriptor, message)
            while "callback" in (answer := self._receive()):
                send(self._descriptor, self._call_back(answer))
        except (*_DAMAGE, RecursionError, MemoryError) as damage:
            raise self._lose(damage) from damage
        if "error" in answer and "items" not in answer:
            error = self.error(answer["error"])
            if isinstance(error, StopIteration):
                # It would end a test's `map` or `zip` as if all had been seen.
                raise RuntimeError("the program raised StopIteration") from error
            raise error
        return answer

    def start(self, job: Message) -> Message:
        """Send the program and return what became of it."""
        try:
            send(self._descriptor, job)
            return self._receive()
        except _DAMAGE as damage:
            raise self._lose(damage) from damage

    def encode(self, value: Any) -> Any:
        return encode(value, self._encode_other)

    def decode(self, wire: Any) -> Any:
        try:
            return decode(wire, self._decode_other)
        except (*_DAMAGE, RecursionError, MemoryError) as damage:
            raise self._lose(damage) from damage

    def _receive(self) -> Message:
        message = receive(self._descriptor)
        if "printed" in message:
            # To wherever the tests have redirected it.
            print(str(message.pop("printed")), end="", file=sys.stdout)
        return message

    def _lose(self, damage: BaseException) -> CandidateLost:
        self.lost = self.lost or f"{type(damage).__name__}: {damage}"
        return CandidateLost(self.lost)

    def error(self, wire: Any) -> BaseException:
        try:
            if type(origin := wire.get("origin")) is int:
                error = self._origins[origin]
            else:
                known = self._decode_other(wire["kind"]) if "kind" in wire else None
                error = decode_error(wire, known if isinstance(known, type) else None)
        except _DAMAGE as damage:
            return self._lose(damage)
        self.raised = error
        return error

    def _call_back(self, message: Message) -> Message:
        function = self._callbacks[message["callback"]]
        arguments = [self.decode(each) for each in message["arguments"]]
        named = {name: self.decode(each) for name, each in message["named"].items()}
        try:
            return {"value": self.encode(function(*arguments, **named))}
        except Exception as error:
            self._origins.append(error)
            return {"error": {**encode_error(error), "origin": len(self._origins) - 1}}

    def _encode_other(self, value: Any) -> Any:
        if type(value) is Remote:
            return {"handle": value.remote_number}
        if isinstance(value, type) and issubclass(value, BaseException):
            for number, known in self._handles.items():
                if known is value:
                    return {"handle": number}
        name = getattr(value, "__name__", "")
        if isinstance(value, types.BuiltinFunctionType) and getattr(builtins, name, None) is value:
            return {"function": name}
        if isinstance(value, Iterator):
            self._callbacks.append(value.__next__)
            return {"iterator": len(self._callbacks) - 1}
        if callable(value):
            self._callbacks.append(value)
            return {"callback": len(self._callbacks) - 1}
        raise TypeError(f"a {type(value).__name__} of the tests cannot be handed to the candidate")

    def _decode_other(self, wire: dict[str, Any]) -> Any:
        number, kind = wire["handle"], wire.get("kind")
        if type(number) is not int:
            raise ValueError("not a handle")
        if number not in self._handles:
            self._handles[number] = (
                _error_class(wire["bases"])
                if kind == "error"
                else Remote(self, number, _KINDS.get(str(kind), Remote))
            )
        known = self._handles[number]
        return _awaiting(self, known) if kind == "coroutine" else known


def _error_class(bases: list[Any]) -> type[BaseException]:
    """Make a class of our own that `except` clauses can name, below the nearest builtin one."""
    for name in bases:
        kind = getattr(builtins, str(name), None)
        if isinstance(kind, type) and issubclass(kind, BaseException):
            return type(str(bases[0]), (kind,), {})
    raise ValueError("not an exception")


async def _awaiting(peer: Peer, handle: Remote) -> Any:
    return peer.ask("await", handle)
