"""Calls that a response makes, in Python syntax or as JSON, read without running any of it."""

import ast
import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

from cbench_server.evaluators.bfcl.arithmetic import computed

# A longer answer is no list of calls.
_MAX_LENGTH = 10_000
# A parser that mends errors takes quadratic time on some texts: 40 ms up to here.
_MAX_LENGTH_PARSED = 2_000
_NAME_KEYS = ("name", "function")
_ARGUMENT_KEYS = ("arguments", "parameters")
# What the parser, a literal that is out of range, or an unhashable key may raise.
_UNREADABLE = (SyntaxError, ValueError, TypeError, ArithmeticError, RecursionError, MemoryError)
_silenced = Lock()


@dataclass(frozen=True, slots=True)
class Call:
    """One function by its name, and its arguments by theirs."""

    function: str
    arguments: Mapping[Any, Any]


Reader = Callable[[str], list[Call]]
"""Reads the calls of a text in one language."""


class NoCalls(Exception):
    """A text is not a list of calls; the message says why."""


def read_calls(text: str, response_format: str, read: Reader | None = None) -> list[Call]:
    """Read a response as `python`, as `json`, or with `auto` as the first of them that it is.

    `read` is for calls in another language than Python. An empty list is a response
    without calls. NoCalls is raised for any other text.
    """
    limit = _MAX_LENGTH if read is None else _MAX_LENGTH_PARSED
    if len(text) > limit:
        raise NoCalls(f"more than {limit:,} characters")
    try:
        if response_format == "json":
            return _json_calls(text)
        if response_format == "python":
            return _code_calls(text, read)
        return _calls_of_either(text, read)
    except _UNREADABLE as error:
        raise NoCalls(f"not a list of calls ({type(error).__name__})") from None


def _calls_of_either(text: str, read: Reader | None) -> list[Call]:
    try:
        return _code_calls(text, read)
    except (NoCalls, *_UNREADABLE):
        # A list of JSON objects never reads as Python calls.
        if "{" not in text:
            raise
        return _json_calls(text)


def _code_calls(text: str, read: Reader | None) -> list[Call]:
    if read is None:
        return _python_calls(text)
    return read(text.strip("`\n ").removeprefix("[").removesuffix("]"))


def _python_calls(text: str) -> list[Call]:
    """Read `[f(a=1), g(b="x")]`; the brackets may be missing."""
    text = text.strip("`\n ")
    text = text if text.startswith("[") else f"[{text}"
    text = text if text.endswith("]") else f"{text}]"
    body = _parsed(text).body
    if not isinstance(body, ast.List):
        raise NoCalls("not a list")
    calls = []
    for element in body.elts:
        if not isinstance(element, ast.Call):
            raise NoCalls("something in the list is not a call")
        calls.append(_call(element))
    return calls


def _parsed(text: str) -> ast.Expression:
    # A regular expression in a response would have the parser warn on our standard error.
    with _silenced, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text, mode="eval")


def _call(node: ast.Call) -> Call:
    """Read one call; what is given by position only is passed over, as BFCL does."""
    parts: list[str] = []
    function = node.func
    while isinstance(function, ast.Attribute):
        parts.append(function.attr)
        function = function.value
    if isinstance(function, ast.Name):
        parts.append(function.id)
    arguments = {each.arg: _value(each.value) for each in node.keywords}
    return Call(".".join(reversed(parts)), arguments)


def _value(node: ast.expr | None) -> Any:
    """Return the value of an argument; names and calls without keywords count as their text."""
    match node:
        case ast.Constant():
            return "..." if node.value is ... else node.value
        case ast.UnaryOp(operand=ast.Constant(value=int() | float() | complex() as number)):
            # BFCL takes every sign for a minus.
            return -number
        case ast.List():
            return [_value(element) for element in node.elts]
        case ast.Tuple():
            return tuple(_value(element) for element in node.elts)
        case ast.Dict():
            pairs = zip(node.keys, node.values, strict=True)
            return {_value(key): _value(value) for key, value in pairs}
        case ast.BinOp():
            return computed(node)
        case ast.Name():
            return node.id
        case ast.Call() if node.keywords:
            inner = _call(node)
            return {inner.function: inner.arguments}
        case ast.Call():
            return ast.unparse(node)
        case ast.Subscript():
            return f"{ast.unparse(node.value)}[{ast.unparse(node.slice)}]"
        case _:
            raise NoCalls("an argument is not a value")


def _json_calls(text: str) -> list[Call]:
    """Read a JSON list of calls, or one call; text around the list is passed over."""
    try:
        found = json.loads(text)
    except ValueError:
        start, end = text.find("["), text.rfind("]")
        found = json.loads(text[start : end + 1])
    listed = [found] if isinstance(found, dict) else found
    if not isinstance(listed, list):
        raise NoCalls("not a list")
    return [_json_call(each) for each in listed]


def _json_call(found: Any) -> Call:
    """Read a call as the interfaces of models write it, or as `{"f": {"a": 1}}`."""
    if not isinstance(found, dict):
        raise NoCalls("something in the list is not a call")
    if isinstance(found.get("function"), dict):
        found = found["function"]
    name = next((found[key] for key in _NAME_KEYS if isinstance(found.get(key), str)), None)
    arguments = next((found[key] for key in _ARGUMENT_KEYS if key in found), None)
    if name is None or arguments is None:
        if len(found) != 1:
            raise NoCalls("something in the list is not a call")
        ((name, arguments),) = found.items()
    if isinstance(arguments, str):
        arguments = json.loads(arguments)
    if not isinstance(arguments, dict):
        raise NoCalls("the arguments of a call are not an object")
    return Call(name, arguments)
