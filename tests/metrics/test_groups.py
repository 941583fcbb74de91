"""Groups: names, bins and order."""

from typing import Any

import pytest

from cbench_server.metrics import PerGroup, Summarizer
from cbench_server.metrics.groups import group_names, group_of, group_text
from cbench_server.results import EvalRow


def row(**values: Any) -> EvalRow:
    return EvalRow("a", 0, {"f1": 1.0}, 0, 0, **{"primary_score": "f1", **values})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (True, "true"),
        (3, "3"),
        (0, "0"),
        (["a", "b"], "a, b"),
        ("x", "x"),
        (0.5, "0.5"),
    ],
)
def test_a_value_is_written_as_people_would(value: Any, text: str) -> None:
    assert group_text(value) == text


def test_few_numbers_are_groups_of_their_own_and_many_are_put_into_bins() -> None:
    few = [str(number) for number in (100, 0, 20)]
    assert [*group_names(few).values()] == ["0", "20", "100"]
    many = {str(number) for number in range(-3, 40)}
    assert [*dict.fromkeys(group_names(many).values())] == [
        *("-2 to -3", "-1", "0", "1", "2 to 3", "4 to 7", "8 to 15", "16 to 31", "32 to 63")
    ]
    shares = {str(number / 32) for number in range(33)}
    assert [*dict.fromkeys(group_names(shares).values())][-3:] == [
        *("0.25 to <0.5", "0.5 to <1", "1 to <2")
    ]


def test_texts_are_in_the_order_of_their_numbers_and_what_is_missing_comes_last() -> None:
    names = group_names(["Level 10", "", "Level 2", "hard"])
    assert [*names.values()] == ["Level 2", "Level 10", "hard", "(none)"]


def test_config_and_dataset_need_not_be_kept() -> None:
    assert group_of(row(dataset="bbh:navigate"), "config") == "navigate"
    assert group_of(row(dataset="notes"), "config") == "notes"
    assert group_of(row(dataset="bbh:navigate"), "dataset") == "bbh:navigate"
    assert group_of(row(metadata={"qa_type": "temporal"}), "qa_type") == "temporal"


def test_the_bins_of_all_systems_are_the_same() -> None:
    summarizer = Summarizer([PerGroup(["length"])], ["a", "b"])
    summarizer.extend([row(groups={"length": str(n)}, ordinal=n) for n in range(1, 41)])
    other = row(groups={"length": "5"})
    other.system = "b"
    summarizer.extend([other])
    summary = summarizer.result().summary
    assert summary["b"]["group_rows:length=4 to 7"] == 1.0
    assert summary["b"]["group_rows:length=8 to 15"] == 0.0
    assert summary["b"]["group:length=8 to 15"] is None
