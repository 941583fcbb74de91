"""The schema of a run file as JSON Schema, for editors."""

from typing import Any

from cbench_server.cli.run_files.schema import SYSTEMS, TABLES, TOP, Key, Table
from cbench_server.cli.run_files.ways import ONLY_WITH

_TEXT = {"type": "string"}
_PRICE = {
    "type": "object",
    "properties": {
        name: {"type": "number", "minimum": 0}
        for name in ("input_usd", "output_usd", "cached_input_usd")
    },
    "additionalProperties": False,
}
_KINDS: dict[str, dict[str, Any]] = {
    "text": _TEXT,
    "path": _TEXT,
    "choice": _TEXT,
    "flag": {"type": "boolean"},
    "count": {"type": "integer", "minimum": 1},
    "natural": {"type": "integer", "minimum": 0},
    "whole": {"type": "integer"},
    "number": {"type": "number"},
    "numbers": {"type": "array", "items": {"type": "number"}, "minItems": 2, "uniqueItems": True},
    "dollars": {"type": "number", "exclusiveMinimum": 0},
    "seconds": {
        "anyOf": [
            {"type": "number", "exclusiveMinimum": 0},
            {"type": "string", "pattern": r"^(\d+(\.\d+)?|\.\d+)\s*(ms|s|m|h|)$"},
        ]
    },
    "share": {
        "anyOf": [
            {"type": "integer", "minimum": 0},
            {"type": "string", "pattern": r"^(\d+|\d+(\.\d+)?%)$"},
        ]
    },
    "texts": {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]},
    "pairs": {"type": "object", "additionalProperties": _TEXT},
    "options": {"type": "object"},
    "owned": {"type": "object", "additionalProperties": {"type": "object"}},
    "price": _PRICE,
    "prices": {"anyOf": [_PRICE, {"type": "array", "items": _PRICE}]},
}


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of run files."""
    properties = _properties(TOP)
    for each in TABLES[1:]:
        made = _object(each)
        if each.is_list:
            made = {"type": "array", "items": made}
        properties[each.name] = {"description": each.about, **made}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A run file of cbench",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }


def _object(each: Table) -> dict[str, Any]:
    made: dict[str, Any] = {
        "type": "object",
        "properties": _properties(each),
        "additionalProperties": False,
    }
    if each.one_of:
        made["oneOf"] = [{"required": [name]} for name in each.one_of]
    if each is SYSTEMS:
        made["dependentSchemas"] = {
            name: {"anyOf": [{"required": [way]} for way in ways]}
            for name, ways in ONLY_WITH.items()
        }
    if each.name == "datasets":
        made["anyOf"] = [{"required": [name]} for name in ("name", "file", "upload")]
    elif each.is_list and not each.one_of:
        made["required"] = ["name"]
    return made


def _properties(each: Table) -> dict[str, Any]:
    return {key.name: _value(key) for key in each.keys}


def _value(key: Key) -> dict[str, Any]:
    chosen = {"enum": [*key.choices]} if key.choices else {}
    return {"description": key.about, **_KINDS[key.kind], **chosen}
