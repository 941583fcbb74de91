"""Identity of a component: a digest of all that can be known to decide what it returns.

That is the source of its package or script, its declared version, and its
`options`, or else its attributes. What a model's weights, another process or the
environment decide is not part of it.
"""

import copyreg
import enum
import hashlib
import logging
import struct
import sys
import threading
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from cbench_server.contract import info_of, name_of
from cbench_server.runs.source_files import SourceUnknown, source_digest, unwrapped

_ATOMS = frozenset({type(None), bool, int, float, str, bytes})
_OURS = ("cbench_server.", "cbench_client.")
_POINTER = struct.calcsize("P")
_MOST_VALUES = 100_000
_LOCKS = (type(threading.Lock()), type(threading.RLock()), threading.Event, threading.Condition)
_HOW = 'Declare `version = "1"`, and change it whenever the answers may'


@dataclass(frozen=True)
class Identity:
    """What a component is known by: a `digest`, or `why` there is none."""

    digest: str = ""
    why: str = ""
    attributes: Mapping[str, str] | None = None
    """Digests of the attributes that are part of it; None where `options` stand for them."""


class _Unknowable(Exception):
    """A value of which it cannot be told what it does."""


def identity_of(component: Any) -> Identity:
    """Say what a component is, as it is now."""
    said = info_of(component)
    walk = _Walk()
    kind = component if isinstance(component, type) else type(component)
    parts: list[Any] = [name_of(component), said.version, kind.__module__, kind.__qualname__]
    attributes: dict[str, str] | None = None
    try:
        parts.append(walk.class_of(kind))
        if said.options is not None:
            parts.append(walk.plain(dict(said.options)))
        else:
            attributes = _attributes(component, walk, must=not said.version)
            parts.append(sorted(attributes.items()))
        parts.append(source_digest(walk.modules))
    except (_Unknowable, SourceUnknown) as error:
        if not said.version:
            return Identity(why=f"{error}. {_HOW}.")
    text = msgspec.json.encode(parts, order="deterministic")
    return Identity(hashlib.sha256(text).hexdigest(), "", attributes)


def identity_of_evaluator(evaluator: Any) -> Identity:
    """Say what an evaluator is; its version, where it has one, stands for its source."""
    said = info_of(evaluator)
    if not said.version or said.options is None:
        return identity_of(evaluator)
    kind = type(evaluator)
    try:
        options = _Walk().plain(dict(said.options))
    except _Unknowable:
        return identity_of(evaluator)
    parts = [evaluator.name, kind.__module__, kind.__qualname__, said.version, options]
    return Identity(hashlib.sha256(msgspec.json.encode(parts)).hexdigest())


def digest_of(value: Any) -> str:
    """Digest a value, with the source of what functions are in it; empty where it is unknowable."""
    walk = _Walk()
    try:
        parts = [walk.plain(value), source_digest(walk.modules)]
    except (_Unknowable, SourceUnknown):
        return ""
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


def changed_attributes(before: Identity, after: Identity) -> list[str]:
    """Name the attributes that are not what they were."""
    one, other = before.attributes or {}, after.attributes or {}
    return sorted(name for name in {*one, *other} if one.get(name) != other.get(name))


def _attributes(component: Any, walk: "_Walk", *, must: bool) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in _state(component).items():
        try:
            text = msgspec.json.encode(walk.plain(value), order="deterministic")
        except _Unknowable as error:
            if must:
                raise _Unknowable(f"its attribute `{name}` holds {error}") from None
            continue
        found[name] = hashlib.sha256(text).hexdigest()
    return found


def _state(component: Any) -> dict[str, Any]:
    """Return the attributes of an object, those in slots too."""
    if isinstance(component, type):
        return {}
    state: dict[str, Any] = {}
    for base in type(component).__mro__:
        slots = vars(base).get("__slots__", ())
        for name in [slots] if isinstance(slots, str) else slots:
            member = vars(base).get(name)
            if isinstance(member, types.MemberDescriptorType):
                try:
                    state[name] = member.__get__(component)
                except AttributeError:
                    continue
    try:
        return {**state, **vars(component)}
    except TypeError:
        return state


class _Walk:
    """Turns values into plain data, and notes the modules they come from."""

    def __init__(self) -> None:
        self.modules: set[str] = set()
        self._open: list[int] = []
        self._functions: set[types.FunctionType] = set()
        self._count = 0

    def plain(self, value: Any) -> Any:
        """Return data that is the same whenever the value does the same; raises _Unknowable."""
        self._count += 1
        if self._count > _MOST_VALUES:
            raise _Unknowable(f"more than {_MOST_VALUES:,} values")
        if type(value) in _ATOMS:
            return [type(value).__name__, repr(value)]
        if id(value) in self._open:
            return ["again", len(self._open) - self._open.index(id(value))]
        self._open.append(id(value))
        try:
            return self._compound(value)
        finally:
            self._open.pop()

    def _compound(self, value: Any) -> Any:
        kind = type(value)
        if kind in (dict, OrderedDict, defaultdict):
            items = [[self.plain(key), self.plain(item)] for key, item in value.items()]
            return [kind.__name__, items]
        if kind in (list, tuple, deque):
            return [kind.__name__, [self.plain(item) for item in value]]
        if kind in (set, frozenset):
            return [kind.__name__, sorted(map(repr, map(self.plain, value)))]
        if isinstance(value, type):
            return self.class_of(value)
        if isinstance(value, types.FunctionType):
            return self._function(value)
        if isinstance(value, types.MethodType):
            return ["method", self.plain(value.__self__), self.plain(value.__func__)]
        if isinstance(value, types.ModuleType):
            self.modules.add(value.__name__)
            return ["module", value.__name__]
        if isinstance(value, enum.Enum):
            return [*self.class_of(kind), value.name]
        if isinstance(value, (logging.Logger, *_LOCKS)):
            return [kind.__name__]
        return self._object(value)

    def _object(self, value: Any) -> Any:
        kind = type(value)
        try:
            if all(map(_is_open, kind.__mro__)):
                state = sorted(_state(value).items())
                return [*self.class_of(kind), [[key, self.plain(item)] for key, item in state]]
            return [*self.class_of(kind), self._pickled(value)]
        except _Unknowable:
            raise _Unknowable(f"a {kind.__module__}.{kind.__qualname__}") from None

    def _pickled(self, value: Any) -> Any:
        """Describe an object with a state that only its own code can read, as a pickle would."""
        try:
            reduce = copyreg.dispatch_table.get(type(value))
            made = reduce(value) if reduce else value.__reduce_ex__(4)
        except Exception:
            raise _Unknowable from None
        if isinstance(made, str):
            return made
        # The last two iterate over the items of a list or dict.
        parts = [*made[:3], *([*part] for part in made[3:5] if part)]
        return [self.plain(part) for part in parts]

    def class_of(self, kind: type) -> list[Any]:
        """Name a class, with what its methods get from outside of their source."""
        captured: list[Any] = []
        for base in kind.__mro__:
            if not _is_standard(base):
                self.modules.add(base.__module__)
                for name, member in vars(base).items():
                    inner = unwrapped(member)
                    if isinstance(inner, types.FunctionType):
                        captured.append([name, self._captured(inner)])
        return ["class", kind.__module__, kind.__qualname__, captured]

    def _function(self, function: types.FunctionType) -> Any:
        self.modules.add(function.__module__)
        code = function.__code__
        return [
            "function",
            function.__module__,
            function.__qualname__,
            [code.co_firstlineno, hashlib.sha256(code.co_code).hexdigest()],
            [repr(each) for each in code.co_consts if type(each) in _ATOMS],
            self.plain([function.__defaults__, function.__kwdefaults__]),
            self._captured(function),
        ]

    def _captured(self, function: types.FunctionType) -> list[Any]:
        """Return what a function closes over, and the plain values of its module that it names."""
        if function in self._functions:
            return []
        self._functions.add(function)
        found: list[Any] = []
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        for name, cell in cells:
            if name != "__class__":
                found.append([name, self._captured_value(name, cell)])
        for name in sorted(_names_in(function.__code__)):
            value = function.__globals__.get(name)
            if isinstance(value, types.FunctionType) and not value.__module__.startswith(_OURS):
                found.append([name, self._captured(value)])
            elif type(value) in _ATOMS and value is not None and not name.startswith("__"):
                found.append([name, self.plain(value)])
        return found

    def _captured_value(self, name: str, cell: types.CellType) -> Any:
        try:
            return self.plain(cell.cell_contents)
        except ValueError:
            return None  # It has no value yet.
        except _Unknowable as error:
            raise _Unknowable(f"its methods use `{name}`, which is {error}") from None


def _names_in(code: types.CodeType) -> set[str]:
    """Return the names that a function reads, those of functions within it too."""
    inner = [each for each in code.co_consts if isinstance(each, types.CodeType)]
    return {*code.co_names}.union(*map(_names_in, inner))


def _is_standard(kind: type) -> bool:
    """Whether a class is of the standard library."""
    top = kind.__module__.partition(".")[0]
    return top in sys.stdlib_module_names and top != "__main__"


def _is_open(kind: type) -> bool:
    """Whether all state that a class adds to its instances is in attributes, none in C."""
    if kind is object or kind.__base__ is None:
        return True
    own = vars(kind)
    slots = sum(isinstance(each, types.MemberDescriptorType) for each in own.values())
    known = slots + ("__dict__" in own) + ("__weakref__" in own)
    return kind.__basicsize__ - kind.__base__.__basicsize__ <= known * _POINTER
