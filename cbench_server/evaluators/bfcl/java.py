"""Java as BFCL reads it: the first call of a text, and its arguments by the types described."""

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from cbench_server.evaluators.bfcl.calls import Call, NoCalls
from cbench_server.evaluators.bfcl.timed import Timed

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

TYPES: dict[str, type] = {
    **dict.fromkeys(("byte", "short", "integer", "long"), int),
    **dict.fromkeys(("float", "double"), float),
    "boolean": bool,
    **dict.fromkeys(("char", "String", "any"), str),
    **dict.fromkeys(("Array", "ArrayList", "Queue", "Stack"), list),
    "Set": set,
    **dict.fromkeys(("HashMap", "Hashtable"), dict),
}
LISTS = ("Array", "ArrayList")

_WHOLE = re.compile(r"-?\d+$")
_LONG = re.compile(r"-?\d+[lL]$")
_FLOAT = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?[fF]$")
_DOUBLE = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$")
_DOT_ALL = re.DOTALL
_LISTED = Timed(r"new\s+ArrayList<\w*>\(Arrays\.asList\((.+?)\)\)")
_ADDING = Timed(r"new\s+ArrayList<\w*>\(\)\s*\{\{\s*(.+?)\s*\}\}", _DOT_ALL)
_ADDED = Timed(r"add\((.+?)\)")
_EMPTY_LIST = Timed(r"new\s+ArrayList<\w*>\(\)")
_ARRAY = Timed(r"new\s+\w+\[\]\s*\{(.*?)\}")
_PUTTING = Timed(r"new\s+HashMap<.*?>\s*\(\)\s*\{\s*\{?\s*(.*?)\s*\}?\s*\}", _DOT_ALL)
_PUT = Timed(r'put\("(.*?)",\s*(.*?)\)')
_EMPTY_MAP = Timed(r"new\s+HashMap<.*?>\s*\(\)")

_AS_WRITTEN = ("identifier", "class_literal", "type_identifier", "method_invocation")
_BY_POSITION = ("identifier", "class_literal")
_QUOTED = ("string_literal", "character_literal")


@cache
def _parser() -> "Parser":
    import tree_sitter_java
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_java.language()))


def read_call(text: str) -> list[Call]:
    """Return the first call in a text, with the text of each named argument; else NoCalls."""
    root = _parser().parse(text.encode()).root_node
    if "ERROR" in str(root):
        raise NoCalls("not Java")
    invocation = _first_invocation(root)
    if invocation is None:
        raise NoCalls("no call of Java")
    source = _Source(text)
    name = source.text(invocation.child_by_field_name("name"))
    of = invocation.child_by_field_name("object")
    listed = invocation.child_by_field_name("arguments")
    return [Call(f"{source.text(of)}.{name}" if of else name, source.arguments(listed))]


def _first_invocation(root: "Node") -> "Node | None":
    left = [root]
    while left:
        node = left.pop()
        if node.type == "method_invocation":
            return node
        left += reversed(node.children)
    return None


class _Source:
    """The text that was parsed."""

    def __init__(self, text: str) -> None:
        self._text = text

    def text(self, node: "Node | None") -> str:
        """Return what a node says; BFCL takes its bytes for characters, so we do."""
        if node is None:
            raise NoCalls("a part of the call is missing")
        return self._text[node.start_byte : node.end_byte]

    def arguments(self, listed: "Node | None") -> dict[Any, str]:
        """Return named arguments; a variable given by position is there without a name."""
        found: dict[Any, str] = {}
        for node in listed.children if listed else ():
            if node.type == "assignment_expression":
                name, value = self.text(node.children[0]), self.value(node.children[2])
            elif node.type in _BY_POSITION:
                name, value = None, self.text(node)
            else:
                continue
            if name in found:
                raise NoCalls("an argument is given twice")
            found[name] = value
        return found

    def value(self, node: "Node", *, is_inner: bool = False) -> str:
        """Return an argument put the way in which types are looked for in it."""
        if node.type in _QUOTED:
            text = self.text(node)
            return text if is_inner else text[1:-1]
        if node.type in _AS_WRITTEN:
            return self.text(node)
        if node.type == "array_creation_expression":
            return f"new {self._part(node, 'type')}[]{self._part(node, 'value')}"
        if node.type == "object_creation_expression":
            # What a body adds is left out.
            listed = node.child_by_field_name("arguments")
            given = (
                [child for child in listed.children if child.type not in ",()"] if listed else []
            )
            texts = ", ".join(self.value(child, is_inner=True) for child in given)
            return f"new {self._part(node, 'type')}({texts})"
        if node.children:
            return "".join(self.value(child, is_inner=True) for child in node.children)
        return self.text(node)

    def _part(self, node: "Node", field: str) -> str:
        part = node.child_by_field_name(field)
        if part is None:
            raise NoCalls("a part of a new object is missing")
        return self.value(part, is_inner=True)


def convert(text: str, kind: str, inner: str = "") -> Any:
    """Return the value that a text is for a described type; the text itself if it is not of it."""
    match kind:
        case "byte" | "short" | "integer":
            return int(text) if _WHOLE.match(text) else text
        case "long":
            return int(text[:-1]) if _LONG.match(text) else text
        case "float":
            return float(text[:-1]) if _FLOAT.match(text) else text
        case "double":
            return float(text) if _DOUBLE.match(text) else text
        case "boolean":
            return text == "true" if text in ("true", "false") else text
        case "ArrayList":
            return _list(text, inner)
        case "Array":
            return _array(text, inner)
        case "HashMap":
            return _map(text)
        case "char" | "String" | "any":
            return text
        case _:
            raise TypeError(f"BFCL reads no {kind}")


def _list(text: str, inner: str) -> Any:
    if listed := _LISTED.found(text):
        return [_item(each.strip(), inner) for each in listed[1].split(",")]
    if adding := _ADDING.found(text):
        return [_item(each.strip(), inner) for each in _ADDED.each(adding[1])]
    return [] if _EMPTY_LIST.found(text) else text


def _item(text: str, inner: str) -> Any:
    return text[1:-1] if inner in ("char", "String") else _of_type(text, inner)


def _of_type(text: str, kind: str) -> Any:
    return convert(text, kind) if kind else _value(text)


def _array(text: str, inner: str) -> Any:
    if not (found := _ARRAY.found(text)):
        return text
    return [_of_type(each.strip(), inner) for each in found[1].split(",") if each.strip()]


def _map(text: str) -> Any:
    if putting := _PUTTING.found(text):
        return {key: _value(value.strip()) for key, value in _PUT.each(putting[1])}
    return {} if _EMPTY_MAP.found(text) else text


def _value(text: str) -> Any:
    """Return the value of a text of which no type is described."""
    if text in ("true", "false"):
        return text == "true"
    if text.startswith('"') and text.endswith('"'):
        return text[1:-1]
    if _LONG.match(text):
        return int(text[:-1])
    if _FLOAT.match(text):
        return float(text[:-1])
    return number_or_text(text)


def number_or_text(text: str) -> int | float | str:
    """Return the number that Python reads in a text, or the text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
