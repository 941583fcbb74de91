"""From flags to a spec, without a daemon."""

import argparse
from pathlib import Path
from typing import Any

import pytest

from cbench_server.cli.exits import UsageError
from cbench_server.cli.parser import build_parser
from cbench_server.cli.spec import build_spec, check_systems, registered_dataset
from cbench_server.cli.uploads import named_file
from cbench_server.cli.values import duration, label, option, positive_int
from cbench_server.datasets.readers.files import is_file_name


def _spec(*words: str, launched: dict[int, tuple[str, str]] | None = None) -> dict[str, Any]:
    args = build_parser().parse_args(["run", *words])
    check_systems(args)
    return build_spec(args, launched or {}, {}, [], None)


def test_names_go_to_systems_in_the_order_of_the_command_line() -> None:
    words = ["--builtin", "identity", "--system", "h:1", "--name", "a"]
    systems = _spec(*words, "--proxy", "http://p", "--name", "b")["systems"]
    assert [system["name"] for system in systems] == ["a", "b", ""]
    assert systems[0]["builtin"] == "identity"
    assert systems[1]["target"] == "h:1"
    assert systems[2]["proxy"]["base_url"] == "http://p"


def test_more_names_than_systems_are_refused() -> None:
    with pytest.raises(UsageError, match='"b" is one too many'):
        _spec("--builtin", "identity", "--name", "a", "--name", "b")


def test_a_target_may_name_one_of_its_systems() -> None:
    [one, path] = _spec("--system", "h:1/go", "--system", "unix:/tmp/a/b")["systems"]
    assert (one["target"], one["served_name"]) == ("h:1", "go")
    assert (path["target"], path["served_name"]) == ("unix:/tmp/a/b", "")


def test_launched_systems_get_the_targets_they_announced() -> None:
    words = ["--builtin", "identity", "--launch", "cmd"]
    launched = _spec(*words, launched={1: ("127.0.0.1:9", "its.log")})["systems"][1]
    assert (launched["target"], launched["log"]) == ("127.0.0.1:9", "its.log")


def test_an_option_goes_to_every_system_or_to_the_one_it_names() -> None:
    words = ["--builtin", "identity", "--builtin", "truncate-head", "--proxy", "http://p"]
    options = ["--option", "seed=7", "--option", "y.ratio=0.3", "--option", "http://p.top_p=1"]
    spec = _spec(*words, "--name", "x", "--name", "y", *options)
    one, two, proxy = spec["systems"]
    # The daemon knows which of them take it.
    assert spec["options"] == {"seed": 7}
    assert "options" not in one
    assert two["options"] == {"ratio": 0.3}
    assert proxy["proxy"]["options"] == {"top_p": 1}


def test_an_option_for_nobody_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UsageError, match='Did you mean "truncate-head"'):
        _spec("--builtin", "truncate-head", "--option", "truncate-hed.ratio=1")


def test_evaluators_may_live_elsewhere_and_have_options() -> None:
    words = ["--builtin", "x", "--evaluator", "a", "--evaluator", "b@h:1"]
    spec = _spec(*words, "--evaluator-option", "b.model=m")
    assert spec["evaluators"] == [
        {"name": "a", "options": {}},
        {"name": "b", "options": {"model": "m"}, "target": "h:1"},
    ]
    with pytest.raises(UsageError, match='no --evaluator "c"'):
        _spec(*words, "--evaluator-option", "c.model=m")


def test_a_reader_answers_with_the_model_of_the_proxies_unless_told() -> None:
    spec = _spec("--builtin", "x", "--reader", "http://r")
    assert spec["reader"]["model"] == "claude-haiku-4-5-20251001"
    with pytest.raises(UsageError, match="--reader-model needs --reader"):
        _spec("--builtin", "x", "--reader-model", "m")


def test_what_is_not_given_is_left_to_the_daemon() -> None:
    spec = _spec("--builtin", "x")
    for name in ("row_timeout", "threshold", "repeats", "seed", "max_concurrency", "score_field"):
        assert spec[name] is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a.jsonl", True), ("A.CSV", True), ("./x", True), ("hotpotqa", False), ("bbh:x", False)],
)
def test_a_file_is_told_from_a_name(text: str, expected: bool) -> None:
    assert is_file_name(text) is expected


def test_a_config_follows_a_colon() -> None:
    assert registered_dataset("bbh:logic", 5) == {
        "name": "bbh",
        "config": "logic",
        "max_examples": 5,
    }
    with pytest.raises(UsageError, match="is not a dataset"):
        registered_dataset(":x", None)


def test_a_file_is_named_by_its_stem() -> None:
    assert named_file("/a/my.set.jsonl.gz") == ("my.set", Path("/a/my.set.jsonl.gz"))
    assert named_file("qa.csv") == ("qa", Path("qa.csv"))


def test_a_file_may_be_given_another_name(tmp_path: Path) -> None:
    assert named_file("new=old/qa.csv") == ("new", Path("old/qa.csv"))
    assert named_file("a/b=c.csv") == ("b=c", Path("a/b=c.csv"))
    (tmp_path / "n=1.csv").touch()
    assert named_file(str(tmp_path / "n=1.csv"))[0] == "n=1"


@pytest.mark.parametrize(
    ("text", "seconds"), [("60", 60), ("500ms", 0.5), ("2m", 120), ("1.5h", 5400), ("3s", 3)]
)
def test_times_have_units(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (duration, "0"),
        (duration, "-1s"),
        (positive_int, "1.5"),
        (positive_int, "-1"),
        (label, "x"),
        (label, "=x"),
        (option, "x"),
        (option, "a.=1"),
    ],
)
def test_what_cannot_be_meant_is_refused(read: Any, text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="write it as|whole number"):
        read(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ratio=0.3", ("", "ratio", 0.3)),
        ("a.b=true", ("a", "b", True)),
        ("127.0.0.1:1.k=[1]", ("127.0.0.1:1", "k", [1])),
        ("k=plain text", ("", "k", "plain text")),
        ("k=a=b", ("", "k", "a=b")),
    ],
)
def test_option_values_are_json_else_text(text: str, expected: tuple[Any, ...]) -> None:
    assert option(text) == expected
