"""Right solutions pass, however they are written."""

import pytest

from .cases import LEGITIMATE, scale, score


@pytest.mark.parametrize("name", LEGITIMATE["responses"])
def test_a_right_function_passes(name: str) -> None:
    assert score(scale(), LEGITIMATE["responses"][name], 20.0) == 1.0


def test_a_long_answer_passes() -> None:
    assert score(scale(), "    return n * 47\n" + "# padding\n" * 30_000) == 1.0


def test_windows_line_ends_do_no_harm() -> None:
    response = "Sure:\r\n```python\r\ndef scale(n):\r\n    return n * 47\r\n```\r\n"
    assert score(scale(), response) == 1.0


@pytest.mark.parametrize("name", LEGITIMATE["programs"])
def test_a_right_program_passes(name: str) -> None:
    program = LEGITIMATE["programs"][name]
    assert score({"test_list": [program["tests"]]}, program["response"], 20.0) == 1.0


@pytest.mark.parametrize(
    "value",
    [
        *("None", "True", "-1", "2 ** 5000", "-(10 ** 4000)", "0.1 + 0.2", "float('inf')", "-0.0"),
        *("1 + 2j", "'text'", "'\\ud800'", "'\\0'", "b'\\x00'", "bytearray(b'a')"),
        *("[1, [2, (3, {'a': {4}})]]", "frozenset({1, (2, 3)})", "range(3, 9, 2)", "..."),
        *("slice(1, None)", "int", "ValueError", "datetime.date(2024, 2, 29)"),
        "datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)",
        *("datetime.timedelta(1, 2, 3)", "datetime.time(1, 2)", "decimal.Decimal('1.10')"),
        *("fractions.Fraction(1, 3)", "collections.deque([1, 2], 5)"),
        *("collections.Counter('aab')", "collections.OrderedDict(a=1)"),
        *("collections.defaultdict(int, a=1)", "array.array('i', [1, 2])", "{'a': 1}.keys()"),
        *("{'a': 1}.items()", "{1: 'a', None: 2.5, (1, 2): []}", "'x' * 3_000_000"),
        *("list(range(300_000))", "eval('[' * 90 + ']' * 90)"),
    ],
)
def test_a_value_comes_back_as_it_is_and_goes_in_as_it_is(value: str) -> None:
    imports = "import array, collections, datetime, decimal, fractions\n"
    tests = [
        f"{imports}x = {value}\ny = f()\nassert y == x and type(y) is type(x) and g(x)\n",
        "assert repr(f()) == repr(x)",
    ]
    response = f"{imports}def f():\n    return {value}\ndef g(x):\n    return x == f()\n"
    assert score({"test_list": tests}, response) == 1.0


def test_a_named_tuple_keeps_its_names() -> None:
    tests = ["p = f()\nassert p == (1, 2) and p.x == 1 and p._replace(x=3).x == 3"]
    response = (
        "from collections import namedtuple\ndef f():\n    return namedtuple('P', 'x y')(1, 2)"
    )
    assert score({"test_list": tests}, response) == 1.0


def test_classes_of_the_prompt_are_shared_by_tests_and_candidate() -> None:
    original = {
        "context": "class Node:\n    def __init__(self, v, next=None):\n        self.v = v\n"
        "        self.next = next\n\ndef total(node):\n",
        "test": "def check(c):\n    assert c(Node(1, Node(2))) == 3\n    assert c(None) == 0\n",
        "entry_point": "total",
    }
    response = "    return 0 if node is None else node.v + total(node.next)\n"
    assert score(original, response) == 1.0


def test_setup_code_and_imports_come_before_the_response() -> None:
    original = {
        "test_imports": ["import math"],
        "test_setup_code": "class Box:\n    def __init__(self, v):\n        self.v = v\nb = Box(2)",
        "test_list": ["assert f(b) == math.sqrt(2)"],
    }
    assert score(original, "def f(b: Box):\n    return math.sqrt(b.v)\n") == 1.0


def test_a_function_may_be_called_check() -> None:
    original = {"context": "def check(n):\n", "entry_point": "check"}
    test = "def check(candidate):\n    assert candidate(2) == 94\n"
    assert score({**original, "test": test}, "    return n * 47\n") == 1.0
    assert score({**original, "test": test}, "    return n\n") == 0.0
    assert score({**original, "test": "assert check(2) == 94\n"}, "    return n * 47\n") == 1.0


def test_bare_assertions_are_a_test_too() -> None:
    assert score(scale("assert scale(2) == 94\n"), "    return n * 47\n") == 1.0
    assert score(scale("assert scale(2) == 94\n"), "    return n\n\ncheck = print\n") == 0.0
