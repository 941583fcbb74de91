"""Cases are data: read whole, refused when they mean nothing, compared strictly."""

import math
import re
from pathlib import Path
from typing import Any

import pytest

from cbench_server.conformance.cases import BadCase, load_cases, select
from cbench_server.conformance.runner import check_steps
from cbench_server.conformance.steps import OPERATIONS
from cbench_server.conformance.values import ABSENT, FALSE_NULL, UNSET, difference, natural
from tests.conformance.conftest import ROOT

CASES = load_cases()


def test_there_are_cases_for_every_area() -> None:
    areas = {case.area for case in CASES}
    assert areas == {"system", "memory", "evaluator", "server", "attach"}
    assert len(CASES) >= 60


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_is_understood(case: Any) -> None:
    check_steps(case)
    assert re.fullmatch(r"[a-z0-9-]+(/[a-z0-9-]+)+", case.name)
    assert case.says.endswith(".")


_STEP = '[[case.step]]\ndo = "health"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[case]]\nname = "a/b"\n' + _STEP, "a case has a name, a sentence"),
        ('[[case]]\nname = "a/b"\nsays = "S."\nneed = []\n' + _STEP, "unknown keys need"),
        ('[[case]]\nname = "a/b"\nsays = "S."\nneeds = ["luck"]\n' + _STEP, "unknown luck"),
        ('[[case]]\nname = "a/b"\nsays = "S."\nover = ["air"]\n' + _STEP, "unknown air"),
        ('[[case]]\nname = "a/b"\nsays = "S."\nprofile = "bear"\n' + _STEP, "unknown bear"),
        (f'[[case]]\nname = "a/b"\nsays = "S."\n{_STEP}' * 2, "two cases are called a/b"),
        ("[[case", "broken.toml"),
    ],
    ids=[
        "no-sentence",
        "unknown-key",
        "unknown-need",
        "unknown-way",
        "unknown-profile",
        "twice",
        "not-toml",
    ],
)
def test_a_file_that_means_nothing_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "broken.toml").write_text(text)
    with pytest.raises(BadCase, match=re.escape(message)):
        load_cases(tmp_path)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ({"do": "dance"}, 'no operation "dance"'),
        ({"do": "health", "sevice": ""}, "health takes no sevice"),
        ({"do": "burst", "count": 1, "call": {"do": "query", "turns": []}}, "query takes no turns"),
    ],
    ids=["unknown-word", "unknown-key", "inside-a-burst"],
)
def test_a_step_that_means_nothing_is_refused(step: dict[str, Any], message: str) -> None:
    case = CASES[0]
    wrong = type(case)("a/b", "S.", (step,))
    with pytest.raises(BadCase, match=message):
        check_steps(wrong)


def test_cases_are_selected_by_path_or_pattern() -> None:
    assert {case.name for case in select(CASES, ["server/token/"])} == {
        case.name for case in CASES if case.name.startswith("server/token/")
    }
    assert all("/cancel/" in case.name for case in select(CASES, ["*/cancel/*"]))
    assert select(CASES, ["server"]) == [case for case in CASES if case.area == "server"]
    assert select(CASES, []) == CASES


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (1, 1.0),
        (1, True),
        (0.0, -0.0),
        ("1", 1),
        ("a", b"a"),
        (None, False),
        ([1], [1, 1]),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": 1}, {}),
        ({"$has": "x"}, "abc"),
        ({"$min": 2}, 1),
        pytest.param({"$any": True}, ABSENT, id="absent"),
        ({"$partly": {"a": 1}}, {"a": 2}),
        ({"$one_of": [1, {"$has": "x"}]}, "abc"),
        ({"$length": 2}, [1]),
        ({"$includes": ["a"]}, ["b"]),
        ({"$names": "conformance_panic"}, "main.panic()"),
        ({"$matches": "a+"}, "aab"),
        ({"$max": 2}, "1"),
    ],
    ids=repr,
)
def test_what_differs_is_told_apart(expected: Any, actual: Any) -> None:
    assert difference(expected, actual, "it") is not None


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (math.nan, math.nan),
        ({"a": [1, {"b": 2.0}]}, {"a": [1, {"b": 2.0}]}),
        ({"$partly": {"a": {"$min": 1, "$max": 3}}}, {"a": 2, "b": 1}),
        ({"$names": "conformance_panic"}, "at conformancePanic (file.js:1)"),
        ({"$one_of": ["", {"$matches": "[A-Z]+"}]}, "LONG"),
    ],
    ids=repr,
)
def test_what_is_equal_is_found_equal(expected: Any, actual: Any) -> None:
    assert difference(expected, actual, "it") is None


def test_what_toml_cannot_say_is_put_in() -> None:
    names = {"$key": "k", "$each": 7}
    assert natural({"$null": True}, names) is None
    assert natural({"$null": False}, names) is FALSE_NULL
    assert natural([{"$unset": True}], names) == [UNSET]
    assert natural({"a": {"$bytes": "00ff"}, "$key-b": "$each"}, names) == {
        "a": b"\0\xff",
        "k-b": 7,
    }
    assert natural({"$repeat": ["ab", 2]}, names) == "abab"
    assert natural([{"$lists": 2}, {"$maps": 2}], names) == [[[]], {"m": {}}]
    assert natural("x-$key", names) == "x-k"


def test_the_readme_explains_every_word_and_no_other() -> None:
    page = (ROOT / "cbench_server/conformance/README.md").read_text()
    table = page.partition("## The words")[2].partition("\n## ")[0]
    explained = {
        word
        for line in table.splitlines()
        if line.startswith("| `")
        for word in re.findall(r"`([a-z-]+)`", line.split("|")[1])
    }
    assert explained == OPERATIONS.keys()
