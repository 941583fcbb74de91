"""BFCL: calls are read, never run, and matched as the leaderboard's checker matches them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench_server.errors import EvaluatorBroken
from cbench_server.evaluators import BFCL
from cbench_server.evaluators.bfcl.calls import NoCalls, read_calls
from cbench_server.types import Evaluator


def _tool(name: str, required: list[str], **properties: Any) -> dict[str, Any]:
    parameters = {"type": "dict", "required": required, "properties": properties}
    return {"name": name, "description": "", "parameters": parameters}


_LIST_OF = {"type": "array", "items": {"type": "string"}}
TOOLS = [
    _tool(
        *("trips.book", ["city", "nights"]),
        city={"type": "string"},
        nights={"type": "integer"},
        price={"type": "float"},
        insured={"type": "boolean"},
        guests=_LIST_OF,
        room={"type": "dict", "properties": {}},
        stops={"type": "array", "items": {"type": "dict"}},
        point={"type": "tuple", "items": {"type": "float"}},
        note={"type": "any"},
    ),
    _tool("weather", ["place"], place={"type": "string"}),
]
TRUTH = [
    {
        "trips.book": {
            "city": ["New York", "NYC"],
            "nights": [3],
            "price": ["", 120, 99.5],
            "insured": ["", True],
            "guests": ["", ["Ann Lee", "Bob"]],
            "room": ["", {"size": ["large", "big"], "view": ["sea", ""]}],
            "stops": ["", [{"at": ["Oslo"]}, {"at": ["Rome", "Roma"]}]],
            "point": ["", [1.5, 2.0]],
            "note": ["", 7],
        }
    }
]

# A call of trips.book(city="NYC", nights=3, ...) and what the leaderboard's checker says of it.
_ARGUMENTS = [
    ("", 1.0),
    ("city='new-york.'", 1.0),
    ("city='n.y.c'", 1.0),
    ("city='New York City'", 0.0),
    ("city=NYC", 1.0),
    ("city=['NYC']", 0.0),
    ("nights='3'", 0.0),
    ("nights=3.0", 0.0),
    ("nights=1 + 2", 1.0),
    ("nights=9 // 3", 1.0),
    ("nights=True", 0.0),
    ("price=120", 1.0),
    ("price=120.0", 1.0),
    ("price=99.5", 1.0),
    ("price=-99.5", 0.0),
    ("price='120'", 0.0),
    ("insured=True", 1.0),
    ("insured=False", 0.0),
    ("insured=1", 0.0),
    ("insured=true", 0.0),
    ("guests=['ann lee', 'BOB']", 1.0),
    ("guests=['Bob', 'Ann Lee']", 0.0),
    ("guests=('Ann Lee', 'Bob')", 0.0),
    ("guests=[]", 1.0),
    ("guests='Ann Lee, Bob'", 0.0),
    ("guests=['Ann Lee', 1]", 0.0),
    ("room={'size': 'Large'}", 1.0),
    ("room={'size': 'big', 'view': 'sea'}", 1.0),
    ("room={'view': 'sea'}", 0.0),
    ("room={'size': 'big', 'floor': 2}", 0.0),
    ("room={'size': ['big']}", 0.0),
    ("room={}", 0.0),
    ("stops=[{'at': 'oslo'}, {'at': 'Roma'}]", 1.0),
    ("stops=[{'at': 'Rome'}, {'at': 'Oslo'}]", 0.0),
    ("stops=[{'at': 'Oslo'}]", 0.0),
    ("stops=[]", 1.0),
    ("point=(1.5, 2.0)", 1.0),
    ("point=[1.5, 2.0]", 1.0),
    ("point=[1.5, 2]", 1.0),
    ("note=7", 1.0),
    ("note='7'", 0.0),
    ("unknown=1", 0.0),
    ("**{'note': 7}", 0.0),
    ("price=x + 1", 0.0),
    ("price=lambda: 120", 0.0),
]

_RESPONSES = [
    ("[trips.book(city='NYC', nights=3)]", 1.0),
    ("trips.book(city='NYC', nights=3)", 1.0),
    ("```\n[trips.book(city='NYC', nights=3)]\n```", 1.0),
    ("```python\n[trips.book(city='NYC', nights=3)]\n```", 0.0),
    ("Sure: [trips.book(city='NYC', nights=3)]", 0.0),
    ("[trips_book(city='NYC', nights=3)]", 0.0),
    ("[book(city='NYC', nights=3)]", 0.0),
    ("[trips.book(nights=3)]", 0.0),
    ("[trips.book('NYC', 3)]", 0.0),
    ("[trips.book(city='NYC', nights=3), weather(place='NYC')]", 0.0),
    ("[weather(place='NYC')]", 0.0),
    ("[]", 0.0),
    ("", 0.0),
]


def _score(response: object, truth: Any = TRUTH, category: str = "", **options: Any) -> float:
    row = {"tools": TOOLS, "ground_truth": truth, "category": category}
    return BFCL(**options).score(row, {"response": response})["bfcl_accuracy"]


@pytest.mark.parametrize(("argument", "score"), _ARGUMENTS)
def test_an_argument_is_of_its_type_and_one_of_the_accepted_values(
    argument: str, score: float
) -> None:
    name = argument.partition("=")[0]
    given = {"city": "city='NYC'", "nights": "nights=3"} | {name: argument}
    assert _score(f"[trips.book({', '.join(filter(None, given.values()))})]") == score


@pytest.mark.parametrize(("response", "score"), _RESPONSES)
def test_a_response_is_a_list_of_calls_and_nothing_else(response: str, score: float) -> None:
    assert _score(response) == score


@pytest.mark.parametrize(
    "call",
    [
        {"function": "trips.book", "parameters": {"city": "NYC", "nights": 3}},
        {"name": "trips.book", "arguments": {"city": "NYC", "nights": 3}},
        {"name": "trips.book", "arguments": '{"city": "NYC", "nights": 3}'},
        {
            "type": "function",
            "function": {"name": "trips.book", "arguments": '{"city": "NYC", "nights": 3}'},
        },
        {"trips.book": {"city": "NYC", "nights": 3}},
    ],
)
def test_calls_come_as_json_too(call: dict[str, Any]) -> None:
    for text in (json.dumps([call]), json.dumps(call), f"```json\n{json.dumps([call])}\n```"):
        assert _score(text) == 1.0
        assert _score(text, response_format="json") == 1.0
        assert _score(text, response_format="python") == 0.0
    assert _score(json.dumps([call, call])) == 0.0
    assert _score(json.dumps([call, 1])) == 0.0


def test_dots_may_be_underscores_where_an_interface_allows_no_dots() -> None:
    text = '[{"name": "trips_book", "arguments": {"city": "NYC", "nights": 3}}]'
    assert _score(text) == 0.0
    assert _score(text, underscore_to_dot=True) == 1.0


def test_parallel_calls_come_in_any_order_and_each_once() -> None:
    truth = [
        {"weather": {"place": ["Oslo"]}},
        {"weather": {"place": ["Rome"]}},
        {"weather": {"place": ["Oslo", "Rome"]}},
    ]
    calls = [f"weather(place='{place}')" for place in ("Rome", "Oslo", "Oslo")]
    assert _score(f"[{', '.join(calls)}]", truth, "parallel") == 1.0
    assert _score(f"[{', '.join(calls[:2])}]", truth, "parallel") == 0.0
    # As in the leaderboard, a call goes to the first reference that takes it.
    greedy = [truth[2], truth[0]]
    assert _score("[weather(place='Rome'), weather(place='Oslo')]", greedy, "parallel") == 1.0
    assert _score("[weather(place='Oslo'), weather(place='Rome')]", greedy, "parallel") == 0.0


@pytest.mark.parametrize(
    ("response", "is_call"),
    [
        ("I cannot do that.", False),
        ("", False),
        (None, False),
        ("[]", False),
        ("[{}]", False),
        ("weather", False),
        ("[weather()]", True),
        ("weather(place='Oslo')", True),
        ("anything(x=1)", True),
    ],
)
def test_irrelevance_wants_no_call_and_relevance_any(response: object, is_call: bool) -> None:
    for category in ("irrelevance", "live_irrelevance"):
        assert _score(response, [], category) == float(not is_call)
    assert _score(response, [], "live_relevance") == float(is_call)
    assert _score(response, []) == float(not is_call)


@pytest.mark.parametrize("category", ["multi_turn_base", "exec_simple", "rest"])
def test_a_category_beyond_it_is_refused_by_name(category: str) -> None:
    with pytest.raises(EvaluatorBroken, match=f'does not score the category "{category}"'):
        _score("[]", TRUTH, category)


def test_a_category_of_the_users_own_is_none_of_its_business() -> None:
    assert _score("[trips.book(city='NYC', nights=3)]", TRUTH, "restaurants") == 1.0


def test_a_reference_that_no_tool_has_is_the_datasets_fault() -> None:
    with pytest.raises(EvaluatorBroken, match='the reference calls "fly"'):
        _score("[fly()]", [{"fly": {}}])
    with pytest.raises(EvaluatorBroken, match="not of the form BFCL has them"):
        _score("[fly()]", ["fly"])


def test_a_row_without_a_reference_gets_no_score() -> None:
    assert BFCL().score({"tools": TOOLS}, {"response": "[]"}) == {}


def test_details_say_what_is_wrong() -> None:
    row = {"tools": TOOLS, "ground_truth": TRUTH}
    wrong = BFCL().assess(row, {"response": "[trips.book(city='Oslo', nights=3)]"})
    assert wrong.details == {
        "calls": 1,
        "reason": 'the value of "city" is not one of those accepted',
    }
    unread = BFCL().assess(row, {"response": "Hello there"})
    assert unread.details == {"calls": 0, "reason": "not a list of calls (SyntaxError)"}
    assert BFCL().assess(row, {"response": "trips.book(city='NYC', nights=3)"}).details == {
        "calls": 1
    }


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(ValueError, match='"xml" is not one of: auto, python, json'):
        BFCL(response_format="xml")


_HOSTILE = [
    "f(a=__import__('os').system('touch /tmp/owned'))",
    "f(a=9**9**9**9)",
    "f(a=1 << 99999999)",
    "f(a='x' * 10**9)",
    "f(a=[0] * 10**9)",
    "f(a='%9999999999d' % 1)",
    "f(a=" + "9" * 6_000 + ")",
    "f(a=" + "-" * 9_000 + "1)",
    "f(a=" + "(" * 8_000,
    "f(a=" + "[" * 190 + "]" * 190 + ")",
    "f(a=" + "1+" * 4_000 + "1)",
    "f(a=" + "x." * 4_000 + "y)",
    "f(a=" + "g(" * 190 + ")" * 190 + ")",
    "f(a=" + "not " * 2_000 + "1)",
    "f(a={[]: 1})",
    "f(a=1e999)",
    "f(a='\\N{BULLET}\\d\\777')",
    "\0",
    "f(a='\ud800')",
    "[" * 9_000,
    '{"a":' * 1_900,
    "[" + ",".join(["f(a=1)"] * 1_400) + "]",
    "f(a=1)" * 1_000_000,
]


@pytest.mark.parametrize("text", _HOSTILE, ids=lambda text: text[:20].encode("unicode_escape"))
def test_hostile_text_is_read_or_refused_and_never_run(text: str) -> None:
    assert _score(text) == 0.0


def test_arithmetic_comes_to_what_python_makes_of_it() -> None:
    text = "f(a=60 * 60, b=2 ** 10, c='a' + 'b', d=[0] * 3, e=-(7 // 2), f=+5, g=1 / 4)"
    (call,) = read_calls(text.replace("e=-(7 // 2), ", ""), "python")
    assert call.arguments == {
        "a": 3600,
        "b": 1024,
        "c": "ab",
        "d": [0, 0, 0],
        # The leaderboard's reader takes any sign for a minus.
        "f": -5,
        "g": 0.25,
    }
    with pytest.raises(NoCalls):
        read_calls(text, "python")


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([*TRUTH[0]["trips.book"], "x"]), _ANY), st.booleans())
def test_any_arguments_are_scored_zero_or_one(arguments: dict[str, Any], is_json: bool) -> None:
    call = {"trips.book": {"city": "NYC", "nights": 3} | arguments}
    items = ", ".join(f"{key}={value!r}" for key, value in call["trips.book"].items())
    assert _score(json.dumps([call]) if is_json else f"[trips.book({items})]") in (0.0, 1.0)


def test_it_is_an_evaluator_that_describes_its_scores() -> None:
    assert isinstance(BFCL(), Evaluator)
    assert [info.name for info in BFCL.score_infos] == ["bfcl_accuracy"]
