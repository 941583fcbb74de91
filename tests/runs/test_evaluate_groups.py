"""`evaluate()` with suites and groups."""

from pathlib import Path
from typing import Any

import pytest

from cbench_server import evaluate
from cbench_server.comparison import compare
from cbench_server.errors import InvalidSpec
from tests.fixtures.small_suite import FIRST, TASKS, publish_as_mirrored, write_mirror


class Says:
    """Answers with the number in the question, but on some tasks."""

    def __init__(self, name: str, wrong: tuple[str, ...] = ()) -> None:
        self.name = name
        self._wrong = wrong

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        asked = example.get("question", example["context"])
        task, _, number = asked.rstrip("?").rpartition(" ")
        return {**example, "response": "no" if task in self._wrong else number}


def test_a_suite_has_its_figure_and_is_compared_by_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CBENCH_DATA_DIR", str(write_mirror(tmp_path)))
    systems = [Says("long", (FIRST,)), Says("short", TASKS[1:3])]
    short = evaluate(systems[:1], "bbh:all", progress=False)
    assert short.summary["long"]["suite:bbh:all"] is None
    assert short.summary["long"]["suite_part:bbh:all"] == pytest.approx(26 / 27)
    assert short.config["notes"][0]["text"].startswith(
        "bbh:all has no figure: of the 250 examples of bbh:boolean_expressions 4 were there, and 26"
    )
    publish_as_mirrored(monkeypatch)
    result = evaluate(systems, "bbh:all", progress=False, group_by=["config"])
    assert result.summary["long"]["suite:bbh:all"] == pytest.approx(26 / 27)
    assert result.summary["short"]["suite:bbh:all"] == pytest.approx(25 / 27)
    assert result.summary["long"][f"group:config={FIRST}"] == 0.0
    assert result.compare("long", "short").difference.value == pytest.approx(1 / 27)
    assert result.compare("long", "short").score == "bbh:all"
    limited = evaluate(systems[:1], "bbh:all", progress=False, max_examples=1)
    assert limited.summary["long"]["suite:bbh:all"] is None
    assert limited.summary["long"]["suite_part:bbh:all"] == pytest.approx(26 / 27)


_EXAMPLES = [
    {"id": n, "context": f"{n}", "question": f"x {n}?", "answer": f"{n}", "level": n % 2}
    for n in range(4)
]


def test_examples_are_grouped_by_their_fields_and_compared_by_them() -> None:
    systems = [Says("right"), Says("wrong", ("x",))]
    result = evaluate(systems, _EXAMPLES, progress=False, group_by=["level"])
    assert result.summary["right"]["group:level=1"] == 1.0
    assert result.summary["right"]["group_rows:level=1"] == 2.0
    assert {row.groups["level"] for row in result.rows} == {"0", "1"}
    assert result.config["group_by"] == ["level"]
    sides = {name: [row for row in result.rows if row.system == name] for name in result.summary}
    found = compare(sides, group_by=["level"])
    assert [(each.group, each.pair.difference.value) for each in found.groups] == [
        ("0", 1.0),
        ("1", 1.0),
    ]


def test_a_field_that_no_example_has_is_refused_with_those_there_are() -> None:
    with pytest.raises(InvalidSpec, match="Fields to group by: level, config, dataset"):
        evaluate([Says("a")], _EXAMPLES, progress=False, group_by=["hop"])
    with pytest.raises(InvalidSpec, match=r'give a list: group_by=\["level"\]'):
        evaluate([Says("a")], _EXAMPLES, progress=False, group_by="level")
