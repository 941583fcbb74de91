"""No program passes but by being right."""

import asyncio
import uuid

import pytest

from cbench_server.evaluators import CodeExecution

from .cases import ATTACKS, CHECK, scale, score

# Agrees with every comparison, and poses as a number.
LIES = {
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge", "contains", "bool"), "True"),
    **dict.fromkeys(("sub", "rsub", "abs"), "0"),
    **dict.fromkeys(("hash", "round", "int", "index"), "94"),
    "float": "94.0",
    "iter": "iter([E()])",
    "instancecheck": "True",
}
LIAR = (
    "    class E:\n"
    + "".join(f"        __{name}__ = lambda self, *a: {value}\n" for name, value in LIES.items())
    + "    return E()\n"
)


@pytest.mark.parametrize("name", ATTACKS["exits"])
def test_an_exit_proves_nothing(name: str) -> None:
    response = ATTACKS["exits"][name]
    assert score(scale(), response) == 0.0
    quiet = "def check(c):\n    for given, want in map(lambda n: (c(n), n), [2, 7]):\n"
    assert score(scale(f"{quiet}        assert given == 47 * want\n"), response) == 0.0


@pytest.mark.parametrize(
    "assertion",
    [
        *("candidate(2) == 94", "94 == candidate(2)", "not (candidate(2) != 94)"),
        *("[candidate(2)] == [94]", "candidate(2) in (94, 95)", "94 in candidate(2)"),
        *("candidate(2) > 93", "93 < candidate(2) < 95", "abs(candidate(2) - 94) < 1e-6"),
        *("__import__('math').isclose(candidate(2), 94)", "round(candidate(2)) == 94"),
        *("{94: 1}[candidate(2)]", "candidate(2) in {94}", "isinstance(candidate(2), int)"),
        *("list(candidate(2)) == [94]", "candidate(3) > candidate(2)"),
        *("sum([candidate(2)]) == 94", "'a' in candidate(2)", "candidate(2) == candidate(2) == 94"),
    ],
)
def test_an_object_that_agrees_with_everything_agrees_with_nothing(assertion: str) -> None:
    assert score(scale(f"def check(candidate):\n    assert {assertion}\n"), LIAR) == 0.0


@pytest.mark.parametrize(
    ("base", "value", "expected"),
    [
        ("int", "1", "94"),
        ("float", "1.5", "94.5"),
        ("str", "'a'", "'b'"),
        ("list", "[1]", "[2]"),
        ("tuple", "(1,)", "(2,)"),
        ("dict", "{1: 2}", "{3: 4}"),
        ("set", "{1}", "{2}"),
        ("frozenset", "{1}", "frozenset({2})"),
        ("bytes", "b'a'", "b'b'"),
        ("bytearray", "b'a'", "bytearray(b'b')"),
        ("complex", "1j", "2j"),
        ("datetime.date", "2024, 1, 1", "datetime.date(2024, 1, 2)"),
        ("decimal.Decimal", "1", "decimal.Decimal(2)"),
        ("collections.deque", "[1]", "collections.deque([2])"),
    ],
)
def test_a_subclass_that_equals_everything_does_not(base: str, value: str, expected: str) -> None:
    imports = "import collections, datetime, decimal\n"
    response = (
        f"    import collections, datetime, decimal\n    class E({base}):\n"
        "        __eq__ = __contains__ = lambda self, o: True\n"
        "        __ne__ = __lt__ = lambda self, o: False\n"
        "        __hash__ = __len__ = __sub__ = lambda self, *a: 0\n"
        f"    return E({value})\n"
    )
    assert score(scale(f"{imports}def check(c):\n    assert c(2) == {expected}\n"), response) == 0.0


@pytest.mark.parametrize("name", ATTACKS["tampering"])
def test_tampering_reaches_no_test(name: str) -> None:
    response = ATTACKS["tampering"][name]
    assert score(scale(), response) == 0.0
    test = "def check(c):\n    assert abs(c(2)) == 94 and len([c(2)]) == 1\n"
    assert score(scale(test), response) == 0.0


SEARCH = """
    import re
    for text in seen:
        found = re.search('w-[0-9a-f]{32}', text) if isinstance(text, str) else None
        if found:
            return found[0]
    return ''
"""


@pytest.mark.parametrize("name", ATTACKS["oracles"])
def test_the_expected_value_is_nowhere_to_be_found(name: str) -> None:
    want, look = f"w-{uuid.uuid4().hex}", ATTACKS["oracles"][name] + SEARCH
    in_test = scale(f"def check(c):\n    want = '{want}'\n    assert c(2) == want\n")
    in_setup = {"test_setup_code": f"want = '{want}'", "test_list": ["assert f(2) == want"]}
    assert score(in_test, look) == 0.0
    assert score(in_setup, f"def f(n):\n{look}") == 0.0


@pytest.mark.parametrize("name", ATTACKS["oracles"])
def test_nothing_of_one_execution_is_in_the_memory_of_the_next(name: str) -> None:
    want = f"w-{uuid.uuid4().hex}"
    test = f"def check(c):\n    want = '{want}'\n    print(want)\n    assert c(2) == want, want\n"
    for _ in range(5):
        assert score(scale(test), f"    print('{want[:-1]}')\n    return '{want[:-1]}'\n") == 0.0
    assert score(scale(test), ATTACKS["oracles"][name] + SEARCH) == 0.0


@pytest.mark.parametrize("name", ATTACKS["forgeries"])
def test_a_forged_verdict_is_not_one(name: str) -> None:
    test = "def check(candidate):\n    assert candidate(2) == 95\n    assert candidate(7) == 330\n"
    assert score(scale(test), ATTACKS["forgeries"][name]) == 0.0


@pytest.mark.parametrize("name", ATTACKS["hangs"])
@pytest.mark.timeout(30)
async def test_a_hang_ends_at_its_deadline(name: str) -> None:
    test = "def check(candidate):\n    assert list(candidate(2)) == 94\n"
    evaluator = CodeExecution(timeout=0.7)
    said = await evaluator.assess(scale(test), {"response": ATTACKS["hangs"][name]})
    assert said.scores == {"pass_at_1": 0.0}
    assert said.details["reason"] == "timeout"


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ("    return n * 46\n", "wrong_answer"),
        ("", "empty"),
        ("  \n", "empty"),
        ("<think>I would write: return n * 47", "empty"),
        ("I cannot help with that.", "not_python"),
        ("    return n *\n", "not_python"),
        ("    return n * 47\0\n", "not_python"),
        ("    return n * 47 # \ud800\n", "not_python"),
        ("    return " + "(" * 5000 + "n" + ")" * 5000, "not_python"),
        ("    raise ValueError\n", "raised"),
        ("    return n * 47\n\nimport no_such_module\n", "raised"),
        ("    return str(n * 47)\n", "wrong_answer"),
        ("    return n * 47\n\ndel scale\n", "undefined"),
        ("    raise SystemExit\n", "exited_early"),
        ("    import os\n    os._exit(0)\n", "exited_early"),
        ("    return bytearray(2 << 30)\n", "memory"),
    ],
)
async def test_a_failure_has_its_reason(response: str, reason: str) -> None:
    said = await CodeExecution().assess(scale(), {"response": response})
    assert (said.scores, said.details["reason"]) == ({"pass_at_1": 0.0}, reason)


def test_executions_do_not_see_each_other() -> None:
    leave = (
        "    import os, sys, builtins\n    open('left', 'w').close()\n"
        "    open('/tmp/left', 'w').close()\n    builtins.left = sys.left = os.left = 1\n"
        "    return n * 47\n"
    )
    find = (
        "    import os, sys, builtins\n    seen = [os.path.exists('left'),\n"
        "        os.path.exists('/tmp/left'), hasattr(builtins, 'left'), hasattr(sys, 'left'),\n"
        "        hasattr(os, 'left')]\n    return n * 47 if not any(seen) else seen\n"
    )
    for _ in range(4):
        assert score(scale(), leave) == 1.0
        assert score(scale(), find) == 1.0


def test_executions_draw_different_random_numbers() -> None:
    response = {"response": "    import random\n    print(random.random())\n"}
    run = [asyncio.run(CodeExecution().assess(scale(CHECK), response)) for _ in range(4)]
    assert len({said.details["output"] for said in run}) == 4
