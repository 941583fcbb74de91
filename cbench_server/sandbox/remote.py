"""Objects of the candidate as the tests see them: opaque handles that forward.

A handle never equals data, even if it claims to, and is not a number. Its own names
begin with `remote_`; all others are the candidate's.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from cbench_server.sandbox.values import MUTABLE
from cbench_server.sandbox.wire import CALCULATING, ORDERING

if TYPE_CHECKING:
    from cbench_server.sandbox.peer import Peer

_MAX_BATCH = 256


class Remote:
    """An object in the candidate's process."""

    __slots__ = (
        "remote_batch",
        "remote_class",
        "remote_ending",
        "remote_items",
        "remote_number",
        "remote_peer",
    )

    def __init__(self, peer: "Peer", number: int, kind: type) -> None:
        own = {"peer": peer, "number": number, "class": kind}
        for name, value in {**own, "items": deque(), "batch": 1, "ending": None}.items():
            object.__setattr__(self, f"remote_{name}", value)

    @property  # type: ignore[misc] # never set
    def __class__(self) -> Any:
        # So that isinstance and inspect know functions and generators; type() is not fooled.
        return self.remote_class

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        peer = self.remote_peer
        peer.calls += 1
        message = {
            "ask": "call",
            "handle": self.remote_number,
            "arguments": [peer.encode(each) for each in arguments],
            "named": {name: peer.encode(each) for name, each in named.items()},
        }
        answer = peer.exchange(message)
        everything = [*arguments, *named.values()]
        for index, wire in dict(answer.get("changed", {})).items():
            _copy_back(everything[int(index)], peer.decode(wire))
        same = answer.get("same")
        if type(same) is int and type(everything[same]) in MUTABLE:
            return everything[same]
        return peer.decode(answer.get("value"))

    def __iter__(self) -> Iterator[Any]:
        iterator = self.remote_peer.ask("iter", self)
        return iterator if type(iterator) is Remote else iter(iterator)

    def __next__(self) -> Any:
        if not self.remote_items and self.remote_ending is None:
            self.remote_fetch()
        if self.remote_items:
            return self.remote_items.popleft()
        ending, again = self.remote_ending, StopIteration()
        object.__setattr__(self, "remote_ending", again)
        raise ending

    def remote_fetch(self) -> None:
        peer, batch = self.remote_peer, self.remote_batch
        message = {"ask": "next", "handle": self.remote_number, "arguments": [], "count": batch}
        answer = peer.exchange(message)
        self.remote_items.extend([peer.decode(each) for each in answer["items"]])
        # Few at first: a test may want one only, of a generator that takes its time.
        object.__setattr__(self, "remote_batch", min(2 * batch, _MAX_BATCH))
        if "error" in answer:
            object.__setattr__(self, "remote_ending", peer.error(answer["error"]))
        elif answer.get("ended") or not answer["items"]:
            object.__setattr__(self, "remote_ending", StopIteration())

    def __getattr__(self, name: str) -> Any:
        return self.remote_peer.ask("get", self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self.remote_peer.ask("set", self, name, value)

    def __delattr__(self, name: str) -> None:
        self.remote_peer.ask("delete", self, name)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is not Remote:
            return False
        # Objects of the candidate's own class: it must say so, and they must consist of the same.
        self.remote_peer.asked_about_itself = True
        states = [self.remote_peer.ask("state", each) for each in (self, other)]
        is_same = None not in states and states[0] == states[1]
        return is_same and self.remote_peer.ask("eq", self, other) is True

    def __hash__(self) -> int:
        return int(self.remote_peer.ask("hash", self))

    def __bool__(self) -> bool:
        return self.remote_peer.ask("bool", self) is not False

    def __contains__(self, item: Any) -> bool:
        peer = self.remote_peer
        peer.asked_about_itself = True
        if peer.ask("contains", self, item) is not True:
            return False
        # One that contains what cannot have been put in contains nothing.
        stranger = os.urandom(16).hex() if isinstance(item, str) else int.from_bytes(os.urandom(25))
        try:
            return peer.ask("contains", self, stranger) is not True
        except Exception:
            return True

    def __len__(self) -> int:
        length = self.remote_peer.ask("len", self)
        return length if type(length) is int else -1

    def __str__(self) -> str:
        return _text(self.remote_peer.ask("str", self))

    def __repr__(self) -> str:
        return _text(self.remote_peer.ask("repr", self))

    def __getitem__(self, key: Any) -> Any:
        return self.remote_peer.ask("getitem", self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.remote_peer.ask("setitem", self, key, value)

    def __delitem__(self, key: Any) -> None:
        self.remote_peer.ask("delitem", self, key)

    def __reversed__(self) -> Any:
        return self.remote_peer.ask("reversed", self)

    def __enter__(self) -> Any:
        return self.remote_peer.ask("enter", self)

    def __exit__(self, *problem: object) -> None:
        self.remote_peer.ask("exit", self)

    def __instancecheck__(self, instance: Any) -> bool:
        self.remote_peer.asked_about_itself = True
        return (
            type(instance) is Remote and self.remote_peer.ask("isinstance", self, instance) is True
        )

    def __subclasscheck__(self, subclass: Any) -> bool:
        self.remote_peer.asked_about_itself = True
        return (
            type(subclass) is Remote and self.remote_peer.ask("issubclass", self, subclass) is True
        )


def _copy_back(old: Any, new: Any) -> None:
    """Change an argument as the candidate has changed its copy."""
    if type(new) is not type(old) or type(old) not in MUTABLE:
        raise TypeError("an argument changed its type")
    old.clear()
    if isinstance(old, dict):
        dict.update(old, new)
    elif isinstance(old, set):
        old.update(new)
    else:
        old.extend(new)


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError("not a text")
    return value


def _ordering(name: str) -> Callable[[Remote, Any], Any]:
    def compare(self: Remote, other: Any) -> Any:
        if type(other) is not Remote:
            return NotImplemented
        self.remote_peer.asked_about_itself = True
        claim = self.remote_peer.ask(name, self, other) is True
        # One that is both below and above another has no order.
        if claim and self.remote_peer.ask(name, other, self) is True:
            return name in ("le", "ge") and self == other
        return claim

    return compare


def _arithmetic(name: str) -> Callable[..., Any]:
    def combine(self: Remote, *others: Any) -> Any:
        result = self.remote_peer.ask(name, self, *others)
        if type(result) is not Remote:
            raise TypeError("an object that is not a number cannot be calculated with")
        return result

    return combine


for _name in ORDERING:
    setattr(Remote, f"__{_name}__", _ordering(_name))
for _name in CALCULATING:
    setattr(Remote, f"__{_name}__", _arithmetic(_name))
# The candidate's, like any name that is not ours.
setattr(Remote, "__doc__", property(lambda self: self.remote_peer.ask("get", self, "__doc__")))  # noqa: B010 # a property in place of a text
