"""JavaScript as BFCL reads it: the first call of a text, its arguments by the types described."""

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from cbench_server.evaluators.bfcl.calls import Call, NoCalls
from cbench_server.evaluators.bfcl.java import number_or_text
from cbench_server.evaluators.bfcl.timed import Timed

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

TYPES: dict[str, type] = {
    "String": str,
    "integer": int,
    "float": float,
    "Bigint": int,
    "Boolean": bool,
    "dict": dict,
    "array": list,
    "any": str,
}
LISTS = ("array",)

_WHOLE = re.compile(r"-?\d+$")
_FLOAT = re.compile(r"-?\d+(?:\.\d+)?$")
_BIG = re.compile(r"-?\d+n$")
_ROWS = Timed(
    r"\[\s*\[.*?\]\s*(?:,\s*\[.*?\]\s*)*\]|\bnew\s+Array\(\s*\[.*?\]\s*(?:,\s*\[.*?\]\s*)*\)"
)
_ROW = Timed(r"\[(.*?)\]")
_ARRAY = Timed(r"\[(.*?)\]|\bnew\s+Array\((.*?)\)")
_OBJECT = Timed(r"\{(.*?)\}")
_PAIR = Timed(r"([^:]+):\s*(.*?)(?:,\s*(?=[^,]+:)|$)")
_QUOTES = "'\""


@cache
def _parser() -> "Parser":
    import tree_sitter_javascript
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_javascript.language()))


def read_call(text: str) -> list[Call]:
    """Return the first call in a text, with the text of each named argument; else NoCalls."""
    root = _parser().parse(text.encode()).root_node
    if "ERROR" in str(root):
        raise NoCalls("not JavaScript")
    statements = (node for node in root.children if node.type == "expression_statement")
    for statement in statements:
        for node in statement.children:
            if node.type == "call_expression":
                return [Call(_text(node.children[0]), _arguments(node.children[1]))]
    raise NoCalls("no call of JavaScript")


def _text(node: "Node") -> str:
    return (node.text or b"").decode()


def _arguments(listed: "Node") -> dict[Any, str]:
    """Return named arguments; a variable or `true` given by position is there without a name."""
    found: dict[Any, str] = {}
    for node in listed.children:
        if node.type == "assignment_expression":
            name, value = _text(node.children[0]), _unquoted(_text(node.children[2]))
        elif node.type in ("identifier", "true"):
            name, value = None, _text(node)
        else:
            continue
        if name in found:
            raise NoCalls("an argument is given twice")
        found[name] = value
    return found


def _unquoted(text: str) -> str:
    return text[1:-1] if _is_quoted(text) else text


def _is_quoted(text: str) -> bool:
    return any(text.startswith(quote) and text.endswith(quote) for quote in _QUOTES)


def convert(text: str, kind: str, inner: str = "") -> Any:
    """Return the value that a text is for a described type; the text itself if it is not of it."""
    match kind:
        case "String":
            return _unquoted(text)
        case "integer":
            return int(text) if _WHOLE.match(text) else text
        case "float":
            return float(text) if _FLOAT.match(text) else text
        case "Bigint":
            return int(text[:-1]) if _BIG.match(text) else text
        case "Boolean":
            return text == "true" if text in ("true", "false") else text
        case "array":
            return _array(text.strip(), inner)
        case "dict":
            return _object(text.strip())
        case "any":
            return text
        case _:
            raise TypeError(f"BFCL reads no {kind}")


def _array(text: str, inner: str = "") -> Any:
    if rows := _ROWS.begins(text):
        listed = [
            row.strip().removeprefix("[") if number == 0 else row.strip()
            for number, row in enumerate(_ROW.each(rows[0]))
        ]
        return [[_value(item) for item in row.split(",")] for row in listed]
    if not (found := _ARRAY.begins(text)):
        return text
    items = (found[1] if found[1] is not None else found[2]).strip()
    texts = [item.strip() for item in items.split(",")] if items else []
    try:
        return [convert(item, inner) if inner else _value(item) for item in texts]
    except (TypeError, ValueError):
        return text


def _object(text: str) -> Any:
    if text == "{}":
        return {}
    if not (found := _OBJECT.begins(text)):
        return text
    return {
        key.strip().strip(_QUOTES): _member(value.strip()) for key, value in _PAIR.each(found[1])
    }


def _member(text: str) -> Any:
    if text.startswith("[") and text.endswith("]"):
        return _array(text)
    if text.startswith("{") and text.endswith("}"):
        return _object(text)
    return _value(text.strip(_QUOTES))


def _value(text: str) -> Any:
    """Return the value of a text of which no type is described."""
    text = text.strip()
    if text in ("true", "false"):
        return text == "true"
    return text[1:-1] if _is_quoted(text) else number_or_text(text)
