"""Tool use: the functions are given, the right call is the answer."""

import json
import re
from collections.abc import Iterator
from typing import Any

from cbench_server.datasets.hub.sources import Access, Part, Row, each
from cbench_server.datasets.protocol import Aggregation, DatasetProtocol, differs, use
from cbench_server.datasets.record import hub_dataset
from cbench_server.types import Example

_BFCL = "gorilla-llm/Berkeley-Function-Calling-Leaderboard"
_ANSWERED = (
    "simple",
    "multiple",
    "parallel",
    "parallel_multiple",
    "live_simple",
    "live_multiple",
    "live_parallel",
    "live_parallel_multiple",
)
_RELEVANCE = ("irrelevance", "live_irrelevance", "live_relevance")
_CATEGORIES = (*_ANSWERED, *_RELEVANCE)
# Not among the rows of the dataset without a config, whose prompt asks for Python.
_OTHER_LANGUAGES = ("java", "javascript")
_CATEGORY = re.compile(r"(\w+?)_\d")


def _bfcl_part(file: str, *, is_optional: bool = True) -> Part:
    return Part(repository=_BFCL, file=file, is_optional=is_optional)


_POSSIBLE_ANSWERS = {
    name: _bfcl_part(f"possible_answer/BFCL_v3_{name}.json")
    for name in (*_ANSWERED, *_OTHER_LANGUAGES)
}


def _bfcl(rows: Iterator[Row], access: Access) -> Iterator[Example]:
    wanted = [access.config] if access.config else [*_ANSWERED]
    answers: dict[Any, Any] = {}
    for index, row in enumerate(rows):
        if not index:
            answers = {
                row["id"]: row["ground_truth"]
                for name in wanted
                if name in _POSSIBLE_ANSWERS
                for row in access.rows(_POSSIBLE_ANSWERS[name])
            }
        category = access.config or _category_of(row["id"])
        expected = row.get("ground_truth") or answers.get(row["id"])
        if expected is None and category not in _RELEVANCE:
            # A call without accepted values cannot be checked.
            continue
        yield {
            "id": row["id"],
            "context": json.dumps(row["function"], indent=2, ensure_ascii=False),
            "question": _asked(row.get("question")),
            "answer": json.dumps(expected, ensure_ascii=False) if expected else "",
            "ground_truth": expected or [],
            "tools": row["function"],
            "category": category,
        }


def _category_of(example_id: str) -> str:
    found = _CATEGORY.match(example_id)
    name = (found[1] if found else "").removesuffix("_python")
    return name if name in _CATEGORIES else ""


def _asked(conversation: Any) -> str:
    """Return the messages of all turns in their order, system prompts included."""
    turns = conversation if isinstance(conversation, list) else []
    return "\n\n".join(message["content"] for turn in turns for message in turn)


BFCL = hub_dataset(
    "bfcl",
    {
        "": tuple(_bfcl_part(f"BFCL_v3_{name}.json") for name in _CATEGORIES),
        **{
            name: (_bfcl_part(f"BFCL_v3_{name}.json", is_optional=False),)
            for name in (*_CATEGORIES, *_OTHER_LANGUAGES)
        },
    },
    _bfcl,
    companions=(*_POSSIBLE_ANSWERS.values(),),
    protocol=DatasetProtocol(
        follows="ShishirPatil/gorilla, bfcl_eval/eval_checker/ast_eval/ast_checker.py",
        shown=("context", "question", "tools", "category"),
        withheld=("answer", "ground_truth"),
        extraction="The calls in the response, as code or JSON.",
        evaluators=use("bfcl"),
        primary_score="bfcl_accuracy",
        groups=("category",),
        aggregate=Aggregation(configs="macro"),
        data=differs("The single-turn categories only, without those of agents."),
        aggregation=differs("The leaderboard's weights over all its categories are not applied."),
    ),
    description="Which function to call, and how, in thirteen categories.",
    family="tool-use",
    size=3481,
    licence="Apache-2.0",
    citation="Patil et al. 2025, gorilla.cs.berkeley.edu",
)

_TYPES = {
    "str": "string",
    "int": "integer",
    "float": "float",
    "bool": "boolean",
    "list": "array",
    "dict": "dict",
    "tuple": "tuple",
    "set": "array",
}


def _apigen(row: Row, index: int) -> Example:
    tools, calls = _parsed(row["tools"]), _parsed(row["answers"])
    return {
        "id": index if row.get("id") is None else row["id"],
        "context": json.dumps(tools, indent=2, ensure_ascii=False),
        "question": row["query"],
        "answer": json.dumps(calls, ensure_ascii=False),
        "ground_truth": [_accepted(call, tools) for call in calls],
        "tools": [_described(tool) for tool in tools],
    }


def _parsed(value: Any) -> list[dict[str, Any]]:
    return list(json.loads(value) if isinstance(value, str) else value)


def _accepted(call: dict[str, Any], tools: list[dict[str, Any]]) -> dict[str, Any]:
    """Give a call with the values that are accepted; one that has a default may be left out."""
    given = call.get("arguments") or {}
    known = next((t.get("parameters") or {} for t in tools if t["name"] == call["name"]), {})
    optional = {name: [""] for name in known if name not in given}
    return {call["name"]: {**{name: [value] for name, value in given.items()}, **optional}}


def _described(tool: dict[str, Any]) -> dict[str, Any]:
    """Describe a function as BFCL does; the source has a type such as `str, optional`."""
    parameters = tool.get("parameters") or {}
    properties = {}
    for name, about in parameters.items():
        kind = re.match(r"\w*", str(about.get("type", "str")).lower())
        properties[name] = {**about, "type": _TYPES.get(kind[0] if kind else "", "any")}
    required = [
        name
        for name, about in parameters.items()
        if "default" not in about and "optional" not in str(about.get("type", ""))
    ]
    schema = {"type": "dict", "properties": properties, "required": required}
    return {**tool, "parameters": schema}


APIGEN = hub_dataset(
    "apigen",
    Part(repository="Salesforce/xlam-function-calling-60k", split="train"),
    each(_apigen),
    protocol=DatasetProtocol(
        follows="Salesforce/xLAM, a set for training",
        shown=("context", "question", "tools"),
        withheld=("answer", "ground_truth"),
        extraction="The calls in the response, as Python or JSON.",
        evaluators=use("bfcl"),
        primary_score="bfcl_accuracy",
        data=differs("There is no official split for tests: all rows are for training."),
        metric=differs("No metric is published for it; calls are checked by the rules of BFCL."),
    ),
    description="Requests with tools and verified calls (gated on the hub).",
    family="tool-use",
    size=60000,
    licence="CC BY 4.0",
    citation="Liu et al. 2024, arXiv:2406.18518",
)

RECORDS = (BFCL, APIGEN)
