"""Calls matched with those that are accepted: names, types, and any of the listed values."""

from collections.abc import Mapping, Sequence
from typing import Any

from cbench_server.errors import EvaluatorBroken
from cbench_server.evaluators.bfcl.calls import Call
from cbench_server.evaluators.bfcl.languages import PYTHON, Language

Accepted = Mapping[str, Sequence[Any]]
"""The values each parameter may have; an empty text among them says that it may be left out."""

_IGNORED = str.maketrans("", "", " ,./-_*^")
# References of a form that no rule fits: a row's own, or made by a hostile response.
_UNLIKE = (
    AttributeError,
    TypeError,
    KeyError,
    OverflowError,
    RecursionError,
    TimeoutError,
    ValueError,
)


def mismatch(
    calls: Sequence[Call],
    accepted: Sequence[Mapping[str, Accepted]],
    tools: Sequence[Mapping[str, Any]],
    *,
    underscores: bool = False,
    language: Language = PYTHON,
) -> str:
    """Say why the calls are not the accepted ones, in any order; empty if they are.

    With `underscores` a response writes the dots of function names as `_`.
    """
    if len(calls) != len(accepted):
        return f"{len(calls)} calls instead of {len(accepted)}"
    left = list(calls)
    for expected in accepted:
        name, values = next(iter(expected.items()))
        tool = _tool(name, tools)
        reason = ""
        for place, call in enumerate(left):
            reason = _difference(call, tool, values, language, underscores=underscores)
            if not reason:
                del left[place]
                break
        if reason:
            return reason
    return ""


def _tool(name: str, tools: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    for tool in tools:
        if tool["name"] == name:
            return tool
    raise EvaluatorBroken(f'the reference calls "{name}", which is not one of the row\'s tools')


def _difference(
    call: Call,
    tool: Mapping[str, Any],
    accepted: Accepted,
    language: Language,
    *,
    underscores: bool,
) -> str:
    name = tool["name"].replace(".", "_") if underscores else tool["name"]
    if call.function != name:
        return f'"{call.function:.80}" is called instead of "{name}"'
    properties = tool["parameters"].get("properties", {})
    for parameter in tool["parameters"].get("required", ()):
        if parameter not in call.arguments:
            return f'the required parameter "{parameter}" is missing'
    for parameter, value in call.arguments.items():
        if parameter not in properties or parameter not in accepted:
            return f'the parameter "{parameter!s:.80}" is not expected'
        if not fits(value, accepted[parameter], properties[parameter], language):
            return f'the value of "{parameter}" is not one of those accepted'
    for parameter, values in accepted.items():
        if parameter not in call.arguments and "" not in values:
            return f'the parameter "{parameter}" is missing'
    return ""


def fits(
    value: Any,
    accepted: Sequence[Any],
    described: Mapping[str, Any],
    language: Language = PYTHON,
) -> bool:
    """Whether a value is of the described type and one of those accepted.

    A value of another type fits where the accepted values have that type as
    well: then it stands for a variable, and has to be equal.
    """
    try:
        return _fits(value, accepted, described, language)
    except _UNLIKE:
        return False


def _fits(
    value: Any, accepted: Sequence[Any], described: Mapping[str, Any], language: Language
) -> bool:
    kind = described["type"]
    wanted = language.types[kind]
    items = described["items"]["type"] if kind in language.lists else ""
    inner = language.types[items] if items else None
    if language.convert is not None:
        if type(value) is not str:
            return False
        value = language.convert(value, kind, items)
    elif kind == "tuple" and type(value) is tuple:
        value = list(value)
    elif kind == "float" and type(value) is int:
        value = float(value)
    found, listed = type(value), _type_of(accepted)
    if found is wanted:
        if inner is not None and not _items_fit(value, accepted, inner):
            return False
        is_plain = listed is None or listed is wanted
    elif found is listed:
        is_plain = False
    else:
        return False
    if is_plain and wanted is dict:
        return any(_same_object(value, one) for one in accepted if one != "")
    if is_plain and inner is dict:
        return any(_same_objects(value, one) for one in accepted)
    if is_plain and wanted is str:
        return _bare(value) in [_bare(one) for one in accepted if type(one) is str]
    if is_plain and wanted is list:
        return _bare_items(value) in [_bare_items(one) for one in accepted]
    return value in accepted


def _type_of(accepted: Sequence[Any]) -> type | None:
    return next((type(one) for one in accepted if one != ""), None)


def _items_fit(items: Sequence[Any], accepted: Sequence[Any], inner: type) -> bool:
    """Whether the items are all of a type that at least one accepted list has."""
    return any(
        type(one) is not list or all(type(item) in (inner, _type_of(one)) for item in items)
        for one in accepted
    )


def _same_objects(found: Sequence[Any], accepted: Sequence[Any]) -> bool:
    return len(found) == len(accepted) and all(map(_same_object, found, accepted))


def _same_object(found: Mapping[Any, Any], accepted: Any) -> bool:
    if accepted == "":
        return False
    for key, value in found.items():
        if key not in accepted or _bare(value) not in [_bare(one) for one in accepted[key]]:
            return False
    return all(key in found or "" in values for key, values in accepted.items())


def _bare_items(items: Sequence[Any]) -> list[Any]:
    return [_bare(item) for item in items]


def _bare(value: Any) -> Any:
    """Return a text without case, spaces and most punctuation; anything else as it is."""
    if type(value) is not str:
        return value
    return value.translate(_IGNORED).lower().replace("'", '"')
