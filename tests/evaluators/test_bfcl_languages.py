"""BFCL in Java and JavaScript: verdicts of the leaderboard's checker, and what keeps it quick."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench_server.evaluators import BFCL
from cbench_server.evaluators.bfcl import java, javascript


def _described(kind: str) -> dict[str, Any]:
    outer, _, inner = kind.partition(" of ")
    return {"type": outer} | ({"items": {"type": inner}} if inner else {})


def _score(category: str, kind: str, accepted: list[Any], response: str, **options: Any) -> float:
    tool = {
        "name": "Box.put",
        "parameters": {"required": ["a"], "properties": {"a": _described(kind)}},
    }
    row = {
        "tools": [tool],
        "ground_truth": [{"Box.put": {"a": accepted}}],
        "category": category,
    }
    return BFCL(**options).score(row, {"response": response})["bfcl_accuracy"]


_JAVA = [
    ("integer", [5], "5", 1.0),
    ("integer", [5], "5L", 0.0),
    ("integer", [5], '"5"', 1.0),
    ("long", [5], "5L", 1.0),
    ("long", [5], "5", 0.0),
    ("float", [1.5], "1.5f", 1.0),
    ("float", [1.5], "1.5", 0.0),
    ("double", [150.0], "1.5e2", 1.0),
    ("boolean", [True], "true", 1.0),
    ("boolean", [True], "True", 0.0),
    ("String", ["New York"], '"new-york"', 1.0),
    ("String", ["New York"], '"Oslo"', 0.0),
    ("any", ["mapArea"], "mapArea", 1.0),
    ("any", ["Foo.class"], "Foo.class", 1.0),
    ("integer", ["limit"], "limit", 1.0),
    ("integer", ["limit"], "Limit", 0.0),
    ("ArrayList of integer", [[1, 2]], "new ArrayList<>(Arrays.asList(1, 2))", 1.0),
    ("ArrayList of integer", [[1, 2]], "new ArrayList<>(Arrays.asList(2, 1))", 0.0),
    ("ArrayList of String", [["a", "b"]], 'new ArrayList<String>(Arrays.asList("a","b"))', 1.0),
    ("ArrayList of String", [["a", "b"]], 'List.of("a", "b")', 0.0),
    ("ArrayList of String", [[]], "new ArrayList<>()", 1.0),
    ("Array of integer", [[1, 2]], "new int[] {1, 2}", 1.0),
    ("Array of integer", [[1, 2]], "new int[2]", 0.0),
    ("HashMap", [{}], "new HashMap<String, String>()", 1.0),
    # The official parser leaves out what the body of a new object adds.
    ("HashMap", [{"k": ["v"]}], 'new HashMap<String, String>() {{ put("k", "v"); }}', 0.0),
    ("Set", ["x"], "x", 0.0),
]
_JAVASCRIPT = [
    ("integer", [5], "5", 1.0),
    ("integer", [5], "5.0", 0.0),
    ("float", [5.0], "5", 1.0),
    ("Bigint", [5], "5n", 1.0),
    ("Boolean", [False], "false", 1.0),
    ("String", ["x y"], "'XY'", 1.0),
    ("String", ["x y"], "`x y`", 0.0),
    ("array of String", [["a", "b"]], "['a', \"b\"]", 1.0),
    ("array of float", [[1.0, 2.5]], "new Array(1, 2.5)", 1.0),
    ("array of array", [[[1, 2], [3, 4]]], "[[1, 2], [3, 4]]", 1.0),
    ("dict", [{"k": [1], "m": [["x"]]}], "{k: 1, 'm': ['x']}", 1.0),
    ("dict", [{"k": [1], "m": ["", 2]}], "{k: 1}", 1.0),
    ("dict", [{"k": [1]}], "{k: 2}", 0.0),
    ("any", ["listElement"], "listElement", 1.0),
]


@pytest.mark.parametrize(("kind", "accepted", "value", "score"), _JAVA)
def test_a_value_of_java_is_read_by_its_type(
    kind: str, accepted: list[Any], value: str, score: float
) -> None:
    assert _score("java", kind, accepted, f"[Box.put(a={value})]") == score
    assert _score("simple_java", kind, accepted, f"Box.put(a = {value});") == score


@pytest.mark.parametrize(("kind", "accepted", "value", "score"), _JAVASCRIPT)
def test_a_value_of_javascript_is_read_by_its_type(
    kind: str, accepted: list[Any], value: str, score: float
) -> None:
    assert _score("javascript", kind, accepted, f"[Box.put(a={value})]") == score
    assert _score("simple_javascript", kind, accepted, f"```Box.put(a={value})```") == score


@pytest.mark.parametrize("category", ["java", "javascript"])
@pytest.mark.parametrize(
    ("response", "score"),
    [
        ("Box.put(a=x)", 1.0),
        ("Box.put(a=x, 5)", 1.0),
        ("Box.put(a=x, y)", 0.0),
        ("Box.put(x)", 0.0),
        ("Box.put(a=x, a=x)", 0.0),
        ("Box.put(a=x, b=x)", 0.0),
        ("Box.take(a=x)", 0.0),
        ("Box.put(a=x", 0.0),
        ("x", 0.0),
        ("", 0.0),
        ('[{"name": "Box.put", "arguments": {"a": "x"}}]', 1.0),
        ('[{"name": "Box.put", "arguments": {"a": 5}}]', 0.0),
        (f"Box.put(a=x) /* {'long ' * 400}*/", 0.0),
    ],
)
def test_one_call_with_named_arguments_is_asked_for(
    category: str, response: str, score: float
) -> None:
    assert _score(category, "any", ["x"], response) == score


def test_json_is_left_out_where_only_code_is_wanted() -> None:
    said = '[{"name": "Box.put", "arguments": {"a": "x"}}]'
    assert _score("java", "any", ["x"], said, response_format="python") == 0.0
    assert _score("java", "any", ["x"], said, response_format="json") == 1.0


_PIECES = ["new ", "ArrayList<>(", "Arrays.asList(", "{{", "}}", "[[", "],[", "]]", "a:", ",", '"']


@given(
    st.lists(st.sampled_from(_PIECES), max_size=30).map("".join),
    st.sampled_from([*java.TYPES, *javascript.TYPES]),
)
def test_no_value_and_no_type_breaks_it(value: str, kind: str) -> None:
    described = f"{kind} of String" if kind.lower().startswith("array") else kind
    for category in ("java", "javascript"):
        assert _score(category, described, ["never"], f"Box.put(a={value})") == 0.0


def test_a_hostile_value_comes_to_an_end() -> None:
    # The official pattern for lists in lists takes exponential time on this one.
    rows = "[[1]" + ",[1]" * 200 + " x]"
    assert _score("javascript", "array of array", [[[1]]], f"Box.put(a={rows})") == 0.0
    assert _score("javascript", "array of array", [[[1]]], f'Box.put(a="{rows}")') == 0.0
