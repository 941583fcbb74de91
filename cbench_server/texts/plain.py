"""Plain data: None, text, bytes, numbers, lists and dicts, which is what can be stored and sent."""

from collections.abc import Mapping
from typing import Any

import msgspec

from cbench_server.errors import Unencodable

MAX_DEPTH = 30
_PLAIN = frozenset({str, int, float, bool, type(None), bytes})
_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1


def encode_fields(fields: Mapping[str, Any], path: str = "", *, canonical: bool = False) -> bytes:
    """Encode plain data as MessagePack, without loss, or raise `Unencodable`."""
    require_plain(fields, path)
    try:
        return (_canonical if canonical else _encoder).encode(fields)
    except (OverflowError, UnicodeEncodeError) as error:
        raise blame(fields, path, error) from error


def require_plain(fields: Mapping[str, Any], path: str = "") -> None:
    """Check that values are None, text, bytes, numbers, and lists and dicts of these.

    MessagePack would take sets and dates too, and give back something else.
    """
    for key, value in fields.items():
        if type(key) is not str and not isinstance(key, str):
            raise Unencodable(f'"{path}" has the key {key!r}; keys must be text.')
        if type(value) not in _PLAIN:
            _require(value, f"{path}{key}", 0)


def _require(value: Any, path: str, depth: int) -> None:
    if depth >= MAX_DEPTH and isinstance(value, list | tuple | Mapping):
        raise Unencodable(
            f'field "{path[:80]}" nests more than {MAX_DEPTH} levels deep. '
            "Flatten it, or give it as text."
        )
    if isinstance(value, list | tuple):
        for position, item in enumerate(value):
            if type(item) not in _PLAIN:
                _require(item, f"{path}[{position}]", depth + 1)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise Unencodable(f'field "{path}" has the key {key!r}; keys must be text.')
            if type(item) not in _PLAIN:
                _require(item, f"{path}.{key}", depth + 1)
    elif value is not None and not isinstance(value, str | int | float | bytes | bytearray):
        raise Unencodable(
            f'field "{path}" holds a {type(value).__module__}.{type(value).__qualname__}, which '
            "cannot be stored. Give text, numbers, bytes, lists or dicts."
        )


def blame(fields: Mapping[str, Any], path: str, error: Exception) -> Unencodable:
    """Explain why `fields` could not be encoded, naming the field that is at fault."""
    try:
        require_plain(fields, path)
    except Unencodable as unencodable:
        return unencodable
    for key, value in fields.items():
        found = _culprit(key, f"{path}<key>") or _culprit(value, f"{path}{key}")
        if found:
            return found
    return Unencodable(f"{path or 'the value'} cannot be stored: {error}")


def _culprit(value: Any, path: str) -> Unencodable | None:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            return Unencodable(
                f'field "{_printable(path)}" holds text with a lone surrogate at position '
                f"{error.start}, which is not Unicode. Encode it with errors='replace' first."
            )
    elif isinstance(value, int) and not _INT_MIN <= value <= _INT_MAX:
        return Unencodable(
            f'field "{path}" holds an integer of {value.bit_length()} bits, and integers are '
            "stored only up to 64 bits. Give it as text."
        )
    elif isinstance(value, list | tuple):
        found = (_culprit(item, f"{path}[{position}]") for position, item in enumerate(value))
        return next(filter(None, found), None)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if culprit := _culprit(key, f"{path}.<key>") or _culprit(item, f"{path}.{key}"):
                return culprit
    return None


def _printable(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()


def plain_form(value: Any) -> Any:
    """Give a subclass of a plain type, such as a NumPy float, as the type itself."""
    for kind in (str, float, int, bytes):
        if isinstance(value, kind):
            return kind(value)  # type: ignore[arg-type]  # it is an instance of that kind
    if isinstance(value, Mapping):
        return dict(value)
    raise Unencodable(f"a {type(value).__module__}.{type(value).__qualname__} cannot be stored.")


_encoder = msgspec.msgpack.Encoder(enc_hook=plain_form)
_canonical = msgspec.msgpack.Encoder(enc_hook=plain_form, order="sorted")
