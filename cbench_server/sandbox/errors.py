"""Exceptions as they cross between tester and candidate: a builtin class and plain arguments."""

import builtins
from typing import Any

from cbench_server.sandbox.values import decode, encode

_MAX_TEXT = 2000


def encode_error(error: BaseException) -> dict[str, Any]:
    """Return the nearest builtin class of an exception, its arguments, text and attributes."""
    names = [
        kind.__name__
        for kind in type(error).__mro__
        if getattr(builtins, kind.__name__, None) is kind
    ]
    try:
        text = str(error)[:_MAX_TEXT]
    except BaseException:
        text = ""
    wire: dict[str, Any] = {"class": names[0] if names else "Exception", "text": text}
    try:
        wire["arguments"] = [encode(each, _refuse) for each in error.args]
        plain = {name: encode(each, _refuse) for name, each in vars(error).items()}
        wire["attributes"] = {name: each for name, each in plain.items() if name.isidentifier()}
    except BaseException:
        wire.pop("attributes", None)
    return wire


def decode_error(wire: Any, kind: type[BaseException] | None = None) -> BaseException:
    """Make the exception again, of the given class instead of its own if there is one."""
    if kind is None:
        found = getattr(builtins, str(wire["class"]), None)
        is_error = isinstance(found, type) and issubclass(found, BaseException)
        kind = found if is_error else Exception
    assert kind is not None
    try:
        error = kind(*[decode(each, _refuse) for each in wire["arguments"]])
        for name, value in wire.get("attributes", {}).items():
            if not name.startswith("_"):
                setattr(error, name, decode(value, _refuse))
    except Exception:
        try:
            error = kind(str(wire.get("text", "")))
        except Exception:
            error = Exception(str(wire.get("text", "")))
    return error


def _refuse(value: Any) -> Any:
    raise ValueError("not plain data")
