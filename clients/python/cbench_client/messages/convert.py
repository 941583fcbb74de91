"""Dicts to messages and back, without loss.

What cannot cross is refused by its field's name, never rounded or dropped: integers beyond 64 bits,
sets, objects, text that is not Unicode. Tuples cross as lists; mapping keys are text.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cbench_client._gen.cbench.v1 import example_pb2, system_pb2
from cbench_client.errors import Unencodable
from cbench_client.messages.room import Room

MAX_DEPTH = 30
_INT_MIN, _INT_MAX = -(2**63), 2**63 - 1
# What a value that is not text counts as, before it is measured.
_LARGE = 256

_SCALARS = frozenset({"string_value", "bool_value", "int_value", "double_value", "bytes_value"})

Value = example_pb2.Value


def value_to_proto(value: Any, path: str = "value") -> example_pb2.Value:
    """Encode one value. Raises `Unencodable`, naming `path`, for what cannot cross."""
    message = Value()
    _fill(message, value, path, 0)
    return message


def fields_to_proto(
    fields: Mapping[str, Any], target: "Mapping[str, example_pb2.Value]", path: str = ""
) -> None:
    """Encode every entry of `fields` into the message map `target`."""
    for key, value in fields.items():
        name = _key(key, path)
        if type(value) is str:
            try:
                target[name].string_value = value
            except ValueError as error:
                raise _not_text(value, f"{path}{name}") from error
        else:
            _fill(target[name], value, f"{path}{name}", 0)


def _fill(message: example_pb2.Value, value: Any, path: str, depth: int) -> None:
    if isinstance(value, str):
        _set_text(message, "string_value", value, path)
    elif value is None:
        message.null_value = True
    elif isinstance(value, bool):
        message.bool_value = value
    elif isinstance(value, int):
        if not _INT_MIN <= value <= _INT_MAX:
            raise Unencodable(
                f'field "{path}" holds an integer of {value.bit_length()} bits, and integers '
                "cross the wire only up to 64 bits. Send it as text."
            )
        message.int_value = value
    elif isinstance(value, float):
        message.double_value = value
    elif isinstance(value, bytes | bytearray):
        message.bytes_value = bytes(value)
    elif isinstance(value, list | tuple):
        _check_depth(depth, path)
        items = message.list_value
        items.SetInParent()
        for position, item in enumerate(value):
            _fill(items.values.add(), item, f"{path}[{position}]", depth + 1)
    elif isinstance(value, Mapping):
        _check_depth(depth, path)
        record = message.map_value
        record.SetInParent()
        for key, item in value.items():
            name = _key(key, f"{path}.")
            _fill(record.fields[name], item, f"{path}.{name}", depth + 1)
    else:
        raise Unencodable(
            f'field "{path}" holds a {type(value).__module__}.{type(value).__qualname__}, which '
            "cannot cross the wire. Send text, numbers, bytes, lists or dicts."
        )


def _key(key: Any, path: str) -> str:
    if not isinstance(key, str):
        raise Unencodable(f'"{path}" has the key {key!r}; keys must be text to cross the wire.')
    try:
        key.encode()
    except UnicodeEncodeError as error:
        raise _not_text(key, f"{path}<key>") from error
    return key


def _check_depth(depth: int, path: str) -> None:
    if depth >= MAX_DEPTH:
        raise Unencodable(
            f'field "{path[:80]}" nests more than {MAX_DEPTH} levels deep, the most that can '
            "cross the wire. Flatten it, or send it as text."
        )


def _not_text(value: str, path: str) -> Unencodable:
    try:
        value.encode()
        where = ""
    except UnicodeEncodeError as error:
        where = f" at position {error.start}"
    return Unencodable(
        f'field "{path}" holds text with a lone surrogate{where}, which is not Unicode. '
        "Encode it with errors='replace' first."
    )


def _set_text(message: Any, name: str, text: str, path: str) -> None:
    try:
        setattr(message, name, text)
    except ValueError as error:
        raise _not_text(text, path) from error


def value_from_proto(
    message: example_pb2.Value, path: str = "value", room: Room | None = None
) -> Any:
    """Decode one value. Raises `Unencodable` for one with no kind set."""
    kind = message.WhichOneof("kind")
    if kind == "string_value":
        return message.string_value
    if kind == "list_value":
        return _list_from_proto(message.list_value.values, path, room)
    if kind == "map_value":
        return fields_from_proto(message.map_value.fields, f"{path}.", room)
    if kind == "null_value":
        if not message.null_value:
            raise Unencodable(f'field "{path}" has null_value set to false, which means nothing.')
        return None
    if kind is None:
        raise Unencodable(f'field "{path}" is a Value with no kind set.')
    return getattr(message, kind)


def _list_from_proto(
    values: Sequence[example_pb2.Value], path: str, room: Room | None
) -> list[Any]:
    if room is not None:
        room.take(len(values), path)
    decoded: list[Any] = []
    for item in values:
        kind = item.WhichOneof("kind")
        # Numbers come by the thousand; only the others may need to be named.
        if kind in _SCALARS:
            decoded.append(getattr(item, kind))
        else:
            decoded.append(value_from_proto(item, f"{path}[{len(decoded)}]", room))
    return decoded


def fields_from_proto(
    fields: Mapping[str, example_pb2.Value], path: str = "", room: Room | None = None
) -> dict[str, Any]:
    """Decode a message map, in sorted key order: maps have no order on the wire."""
    if room is not None:
        room.take(len(fields), path or "value")
    return {key: value_from_proto(fields[key], f"{path}{key}", room) for key in sorted(fields)}


def example_to_proto(
    example: Mapping[str, Any], message: example_pb2.Example | None = None
) -> example_pb2.Example:
    """Encode an example; `id` and `dataset` travel in their own fields."""
    if message is None:
        message = example_pb2.Example()
    message.SetInParent()
    rest = dict(example)
    if "id" in rest:
        id_to_proto(rest.pop("id"), message.id)
    if isinstance(rest.get("dataset"), str):
        _set_text(message, "dataset", rest.pop("dataset"), "dataset")
    fields_to_proto(rest, message.fields)
    return message


def visible_to_proto(
    example: Mapping[str, Any], withheld: frozenset[str], message: example_pb2.Example
) -> int:
    """Encode an example without some of its fields, and return how much text it holds.

    The quick way for examples whose fields are mostly text; raises as `example_to_proto`.
    """
    message.SetInParent()
    fields = message.fields
    size = 0
    try:
        for name, value in example.items():
            if name in withheld:
                continue
            if type(value) is not str:
                if name == "id":
                    id_to_proto(value, message.id)
                else:
                    _fill(fields[_key(name, "")], value, name, 0)
                    size += _LARGE
                continue
            size += len(value)
            if name == "id":
                message.id.text = value
            elif name == "dataset":
                message.dataset = value
            else:
                fields[name].string_value = value
    except (ValueError, TypeError):
        # Encoded field by field it is refused by the name of the field at fault.
        visible = {name: value for name, value in example.items() if name not in withheld}
        example_to_proto(visible, example_pb2.Example())
        raise
    return size


def example_from_proto(message: example_pb2.Example) -> dict[str, Any]:
    """Decode an example."""
    example: dict[str, Any] = {}
    if message.HasField("id"):
        example["id"] = id_from_proto(message.id)
    if message.HasField("dataset"):
        example["dataset"] = message.dataset
    example.update(fields_from_proto(message.fields))
    return example


def id_to_proto(example_id: Any, message: example_pb2.ExampleId) -> None:
    """Encode an id, which is text or an integer and keeps its type."""
    if isinstance(example_id, str):
        _set_text(message, "text", example_id, "id")
    elif isinstance(example_id, int) and not isinstance(example_id, bool):
        if not _INT_MIN <= example_id <= _INT_MAX:
            raise Unencodable('field "id" holds an integer beyond 64 bits. Send it as text.')
        message.number = example_id
    else:
        raise Unencodable(f'field "id" holds {example_id!r}; an id is text or an integer.')


def id_from_proto(message: example_pb2.ExampleId) -> str | int:
    """Decode an id."""
    kind = message.WhichOneof("kind")
    if kind is None:
        raise Unencodable('field "id" is an ExampleId with no kind set.')
    return message.text if kind == "text" else message.number


_TURN_TEXTS = ("role", "content", "speaker", "time", "session")


def turn_to_proto(turn: Mapping[str, Any], message: example_pb2.Turn) -> None:
    """Encode one turn of a conversation."""
    rest = dict(turn)
    for name in _TURN_TEXTS:
        if isinstance(rest.get(name), str):
            _set_text(message, name, rest.pop(name), f"turn.{name}")
    fields_to_proto(rest, message.fields, "turn.")


def turn_from_proto(message: example_pb2.Turn) -> dict[str, Any]:
    """Decode one turn; `role` and `content` are always there."""
    turn: dict[str, Any] = {"role": message.role, "content": message.content}
    for name in ("speaker", "time", "session"):
        if text := getattr(message, name):
            turn[name] = text
    turn.update(fields_from_proto(message.fields, "turn."))
    return turn


def turns_to_proto(turns: Sequence[Mapping[str, Any]], target: Any) -> None:
    """Encode turns into a repeated field."""
    for turn in turns:
        turn_to_proto(turn, target.add())


def turns_from_proto(turns: Iterable[example_pb2.Turn]) -> list[dict[str, Any]]:
    """Decode the turns of a repeated field."""
    return [turn_from_proto(turn) for turn in turns]


_LONGEST_S = 315_576_000_000.0
_USAGE_COUNTS = (
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "cached_prompt_tokens",
    "requests",
    "abandoned_requests",
)


def usage_to_proto(usage: Mapping[str, Any], message: system_pb2.Usage) -> None:
    """Encode usage in the OpenAI shape, plus `cost_usd` and `compute_seconds`."""
    for name in _USAGE_COUNTS:
        count = usage.get(name)
        if isinstance(count, int):
            if not _INT_MIN <= count <= _INT_MAX:
                raise Unencodable(f'usage "{name}" is {count.bit_length()} bits long, beyond 64.')
            setattr(message, name, count)
    if isinstance(usage.get("cost_usd"), int | float):
        message.cost_usd = usage["cost_usd"]
    if isinstance(usage.get("compute_seconds"), int | float):
        message.compute_time.FromNanoseconds(round(_durable(usage["compute_seconds"]) * 1e9))


def handler_seconds(response: Any) -> float | None:
    """Return what the system's own code took, None where its SDK does not say."""
    if not response.HasField("handler_time"):
        return None
    taken = response.handler_time
    return _durable(taken.seconds + taken.nanos / 1e9)


def _durable(seconds: float) -> float:
    """Bring what may be any number into what a Duration can say, ten thousand years."""
    return max(-_LONGEST_S, min(_LONGEST_S, seconds)) if seconds == seconds else 0.0


def usage_from_proto(message: system_pb2.Usage) -> dict[str, Any]:
    """Decode usage; what was not reported is left out."""
    usage: dict[str, Any] = {
        name: getattr(message, name)
        for name in (*_USAGE_COUNTS, "cost_usd")
        if message.HasField(name)
    }
    if message.HasField("compute_time"):
        usage["compute_seconds"] = _durable(message.compute_time.ToNanoseconds() / 1e9)
    return usage


def processed_to_proto(
    processed: Mapping[str, Any],
    original: Mapping[str, Any] | None,
    message: system_pb2.ProcessResponse,
) -> None:
    """Encode what a system returned.

    Fields equal to the original's are named, not echoed, and `api_usage` in
    the OpenAI shape travels as `usage` too.
    """
    rest = dict(processed)
    usage = rest.get("api_usage")
    if isinstance(usage, Mapping) and usage:
        usage_to_proto(usage, message.usage)
    if original is not None:
        carried = [
            key
            for key, value in rest.items()
            if key in original and _unchanged(value, original[key])
        ]
        for key in carried:
            del rest[key]
        message.carried_fields.extend(carried)
    fields_to_proto(rest, message.fields)


def _unchanged(value: Any, original: Any) -> bool:
    # Equality alone would take 1, 1.0 and True for one another.
    if value is original:
        return not isinstance(value, list | dict)
    return isinstance(value, str) and isinstance(original, str) and value == original


def processed_from_proto(
    message: system_pb2.ProcessResponse, sent: Mapping[str, Any]
) -> dict[str, Any]:
    """Decode what a system returned for the example `sent`."""
    return answer_from_proto(message, sent)[0]


def answer_from_proto(
    message: system_pb2.ProcessResponse,
    example: Mapping[str, Any],
    withheld: frozenset[str] = frozenset(),
) -> tuple[dict[str, Any], list[str]]:
    """Decode what a system returned for an example that was sent without the fields withheld.

    Names the texts in it that are the example's own, too.
    """
    processed: dict[str, Any] = {}
    carried: list[str] = []
    for name in message.carried_fields:
        if name not in example or name in withheld:
            raise Unencodable(f'carried_fields names "{name}", which the example did not have.')
        processed[name] = value = example[name]
        if isinstance(value, str):
            carried.append(name)
    fields, room = message.fields, Room()
    for name in fields if len(fields) == 1 else sorted(fields):
        entry = fields[name]
        if name in processed and name in carried:
            carried.remove(name)
        if entry.WhichOneof("kind") == "string_value":
            processed[name] = text = entry.string_value
            if example.get(name) == text:
                carried.append(name)
        else:
            processed[name] = value_from_proto(entry, name, room)
    return processed, carried
