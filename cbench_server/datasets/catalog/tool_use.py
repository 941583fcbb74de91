"""Tool use: the functions are given, the right call is the answer."""

import json
from collections.abc import Iterator
from typing import Any

from cbench_server.datasets.hub.sources import Access, Part, Row, each
from cbench_server.datasets.record import hub_dataset
from cbench_server.types import Example

_BFCL = "gorilla-llm/Berkeley-Function-Calling-Leaderboard"


def _bfcl_part(file: str) -> Part:
    return Part(repository=_BFCL, file=file, is_optional=True)


_POSSIBLE_ANSWERS = tuple(
    _bfcl_part(f"possible_answer/BFCL_v3_{name}.json") for name in ("live_multiple", "live_simple")
)


def _bfcl(rows: Iterator[Row], access: Access) -> Iterator[Example]:
    answers: dict[Any, Any] = {}
    for index, row in enumerate(rows):
        if not index:
            answers = {
                row["id"]: row["ground_truth"]
                for part in _POSSIBLE_ANSWERS
                for row in access.rows(part)
            }
        example_id = index if row.get("id") is None else row["id"]
        functions = row["function"]
        expected = row.get("ground_truth") or answers.get(example_id)
        yield {
            "id": example_id,
            "context": json.dumps(functions, indent=2, ensure_ascii=False),
            "question": _asked(row.get("question")),
            "answer": _first_call(expected) or functions[0]["name"],
            "tools": functions,
        }


def _asked(conversation: Any) -> str:
    """Return the messages of all turns in their order, system prompts included."""
    turns = conversation if isinstance(conversation, list) else []
    return "\n\n".join(message["content"] for turn in turns for message in turn)


def _first_call(expected: Any) -> str:
    first = expected[0] if isinstance(expected, list) and expected else expected
    if not first:
        return ""
    return first if isinstance(first, str) else json.dumps(first, ensure_ascii=False)


BFCL = hub_dataset(
    "bfcl",
    {
        "": tuple(
            _bfcl_part(f"BFCL_v3_{name}.json")
            for name in ("live_multiple", "live_simple", "rest", "exec_multiple")
        )
    },
    _bfcl,
    companions=_POSSIBLE_ANSWERS,
    description="Which function to call, and how; scored on the text of the call.",
    family="tool-use",
    official=False,
    size=1431,
    licence="Apache-2.0",
    citation="Patil et al. 2025, gorilla.cs.berkeley.edu",
)


def _apigen(row: Row, index: int) -> Example:
    return {
        "id": index,
        "context": row["query"],
        "answer": row["answers"],
        "tools": row["tools"],
    }


APIGEN = hub_dataset(
    "apigen",
    Part(repository="Salesforce/xlam-function-calling-60k", split="train"),
    each(_apigen),
    description="Requests with tools and verified calls (gated on the hub).",
    family="tool-use",
    official=False,
    size=60000,
    licence="CC BY 4.0",
    citation="Liu et al. 2024, arXiv:2406.18518",
)

RECORDS = (BFCL, APIGEN)
