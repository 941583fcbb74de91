"""Values as they cross between tester and candidate: exact plain data, and nothing else.

Numbers, text and None travel as JSON has them; all else is an object with one
telling key. What is a subclass of a plain type arrives as the plain type, so
that no overridden `__eq__` reaches the tests. Anything unknown is left to the
`other` function, which makes a handle of it.
"""

import array
import builtins
import collections
import datetime
import decimal
import fractions
from collections.abc import Callable, Iterable
from typing import Any

MAX_DEPTH = 400
# Longer integers as hexadecimal: decimal conversion is slow, and limited.
_LONG_INTEGER = 1 << 2048

_ATOMS = {str, int, float, bool, type(None)}
_EMPTY: dict[Any, Any] = {}
_KEYS, _VALUES, _ITEMS = type(_EMPTY.keys()), type(_EMPTY.values()), type(_EMPTY.items())
_SINGLETONS = {"Ellipsis": Ellipsis, "NotImplemented": NotImplemented}
_MOMENTS: dict[str, Any] = {
    "date": datetime.date,
    "datetime": datetime.datetime,
    "time": datetime.time,
}

MUTABLE = (
    list,
    dict,
    set,
    bytearray,
    collections.deque,
    collections.Counter,
    collections.OrderedDict,
    collections.defaultdict,
)
"""What a call may change in place."""

Other = Callable[[Any], Any]


def encode(value: Any, other: Other, depth: int = 0) -> Any:
    """Return the value as JSON can carry it; raises ValueError if it is nested too deeply."""
    kind: Any = type(value)
    if kind in _ATOMS:
        if kind is int and not -_LONG_INTEGER < value < _LONG_INTEGER:
            return {"int": hex(value)}
        return value
    if depth > MAX_DEPTH:
        raise ValueError(f"a value nested more than {MAX_DEPTH} deep")

    def each(items: Iterable[Any]) -> list[Any]:
        found = [*items]
        if _are_plain(found):
            return found
        return [encode(item, other, depth + 1) for item in found]

    encoder = _ENCODERS.get(kind)
    if encoder is not None:
        return encoder(value, each)
    for base, to_plain in _BASES:
        if isinstance(value, base):
            return encode(to_plain(value), other, depth)
    if isinstance(value, tuple):
        return _encode_tuple(value, each)
    if kind is type and getattr(builtins, name := value.__name__, None) is value:
        return {"builtin": name}
    return other(value)


def decode(wire: Any, other: Other) -> Any:
    """Return what was encoded; raises ValueError, TypeError or the like if it was not by `encode`.

    `other` gets every object whose key is not known here.
    """
    if type(wire) in _ATOMS:
        return wire
    if type(wire) is not dict or not wire:
        raise ValueError("not a value")
    key = next(iter(wire))
    decoder = _DECODERS.get(key)
    if decoder is None:
        return other(wire)

    def each(items: Iterable[Any]) -> list[Any]:
        if type(items) is not list:
            raise TypeError("not a list")
        if set(map(type, items)) <= _ATOMS:
            return items
        return [decode(item, other) for item in items]

    return decoder(wire[key], each)


def _are_plain(items: list[Any]) -> bool:
    """Whether JSON can carry the items as they are: a quick look that spares most a slow one."""
    kinds = set(map(type, items))
    if int not in kinds:
        return kinds <= _ATOMS
    return kinds == {int} and max(max(items), -min(items)) < _LONG_INTEGER


_Each = Callable[[Iterable[Any]], list[Any]]


def _encode_pairs(value: Any, each: _Each) -> list[Any]:
    return [each(value.keys()), each(value.values())]


def _encode_tuple(value: Any, each: _Each) -> Any:
    items = each(tuple.__iter__(value))
    fields = getattr(type(value), "_fields", None)
    if isinstance(fields, tuple) and len(fields) == len(items):
        return {"namedtuple": [type(value).__name__, list(fields), items]}
    return {"tuple": items}


def _encode_default_dict(value: Any, each: _Each) -> Any:
    factory = value.default_factory
    name = getattr(factory, "__name__", "")
    is_plain = name in ("int", "list", "dict", "set", "str", "float", "bool", "tuple")
    return {"defaultdict": [name if is_plain else "", *_encode_pairs(value, each)]}


_ENCODERS: dict[type, Callable[[Any, _Each], Any]] = {
    list: lambda value, each: {"list": each(value)},
    tuple: lambda value, each: {"tuple": each(value)},
    dict: lambda value, each: {"dict": _encode_pairs(value, each)},
    set: lambda value, each: {"set": each(value)},
    frozenset: lambda value, each: {"frozenset": each(value)},
    complex: lambda value, each: {"complex": [value.real, value.imag]},
    bytes: lambda value, each: {"bytes": value.hex()},
    bytearray: lambda value, each: {"bytearray": value.hex()},
    memoryview: lambda value, each: {"bytes": value.tobytes().hex()},
    range: lambda value, each: {"range": each([value.start, value.stop, value.step])},
    slice: lambda value, each: {"slice": each([value.start, value.stop, value.step])},
    type(Ellipsis): lambda value, each: {"singleton": "Ellipsis"},
    type(NotImplemented): lambda value, each: {"singleton": "NotImplemented"},
    collections.deque: lambda value, each: {"deque": [each(value), value.maxlen]},
    collections.Counter: lambda value, each: {"counter": _encode_pairs(value, each)},
    collections.OrderedDict: lambda value, each: {"ordereddict": _encode_pairs(value, each)},
    collections.defaultdict: _encode_default_dict,
    _KEYS: lambda value, each: {"keys": each(value)},
    _VALUES: lambda value, each: {"values": each(value)},
    _ITEMS: lambda value, each: {"items": each(value)},
    array.array: lambda value, each: {"array": [value.typecode, value.tobytes().hex()]},
    decimal.Decimal: lambda value, each: {"decimal": str(value)},
    fractions.Fraction: lambda value, each: {
        "fraction": [hex(value.numerator), hex(value.denominator)]
    },
    datetime.date: lambda value, each: {"moment": ["date", value.isoformat()]},
    datetime.datetime: lambda value, each: {"moment": ["datetime", value.isoformat()]},
    datetime.time: lambda value, each: {"moment": ["time", value.isoformat()]},
    datetime.timedelta: lambda value, each: {
        "timedelta": [value.days, value.seconds, value.microseconds]
    },
    datetime.timezone: lambda value, each: {"timezone": each([value.utcoffset(None)])},
}

# The methods of the base itself: a subclass may have overridden its own.
_BASES: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (int, lambda value: int.__add__(value, 0)),
    (float, lambda value: float.__add__(value, 0.0)),
    (complex, lambda value: complex.__add__(value, 0)),
    (str, lambda value: "".join(str.__iter__(value))),
    (bytes, lambda value: bytes.__getitem__(value, slice(None)) + b""),
    (bytearray, lambda value: bytearray.__add__(bytearray(), value)),
    (list, lambda value: [*list.__iter__(value)]),
    (dict, lambda value: dict(zip(dict.keys(value), dict.values(value), strict=True))),
    (frozenset, lambda value: frozenset(frozenset.__iter__(value))),
    (set, lambda value: set(set.__iter__(value))),
    (collections.deque, lambda value: collections.deque(collections.deque.__iter__(value))),
)


def _decode_pairs(wire: Any, each: _Each) -> dict[Any, Any]:
    keys, values = wire
    return dict(zip(each(keys), each(values), strict=True))


def _decode_named_tuple(wire: Any, each: _Each) -> Any:
    name, fields, items = wire
    if not all(type(field) is str for field in fields) or len(fields) > 255:
        raise ValueError("not a named tuple")
    make_class: Any = collections.namedtuple
    return make_class(str(name), fields)._make(each(items))


def _decode_default_dict(wire: Any, each: _Each) -> Any:
    name, keys, values = wire
    factories = {"int": int, "list": list, "dict": dict, "set": set, "str": str}
    factories |= {"float": float, "bool": bool, "tuple": tuple}
    return collections.defaultdict(factories.get(name), _decode_pairs([keys, values], each))


def _decode_builtin(wire: Any, each: _Each) -> type:
    kind = getattr(builtins, wire)
    if not isinstance(kind, type):
        raise ValueError("not a type")
    return kind


_DECODERS: dict[str, Callable[[Any, _Each], Any]] = {
    "int": lambda wire, each: int(wire, 16),
    "list": lambda wire, each: list(each(wire)),
    "tuple": lambda wire, each: tuple(each(wire)),
    "namedtuple": _decode_named_tuple,
    "dict": _decode_pairs,
    "set": lambda wire, each: set(each(wire)),
    "frozenset": lambda wire, each: frozenset(each(wire)),
    "complex": lambda wire, each: complex(*wire),
    "bytes": lambda wire, each: bytes.fromhex(wire),
    "bytearray": lambda wire, each: bytearray.fromhex(wire),
    "range": lambda wire, each: range(*each(wire)),
    "slice": lambda wire, each: slice(*each(wire)),
    "singleton": lambda wire, each: _SINGLETONS[wire],
    "deque": lambda wire, each: collections.deque(each(wire[0]), wire[1]),
    "counter": lambda wire, each: collections.Counter(_decode_pairs(wire, each)),
    "ordereddict": lambda wire, each: collections.OrderedDict(_decode_pairs(wire, each)),
    "defaultdict": _decode_default_dict,
    "keys": lambda wire, each: dict.fromkeys(each(wire)).keys(),
    "values": lambda wire, each: dict(enumerate(each(wire))).values(),
    "items": lambda wire, each: dict(each(wire)).items(),
    "array": lambda wire, each: array.array(str(wire[0]), bytes.fromhex(wire[1])),
    "decimal": lambda wire, each: decimal.Decimal(wire),
    "fraction": lambda wire, each: fractions.Fraction(int(wire[0], 16), int(wire[1], 16)),
    "moment": lambda wire, each: _MOMENTS[wire[0]].fromisoformat(wire[1]),
    "timedelta": lambda wire, each: datetime.timedelta(*wire),
    "timezone": lambda wire, each: datetime.timezone(*each(wire)),
    "builtin": _decode_builtin,
}
