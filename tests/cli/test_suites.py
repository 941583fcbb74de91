"""Suites: all configs of a dataset in one run, with the figure that is published for them."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from cbench_server.daemon.embedded import embedded
from cbench_server.registry import registry
from tests.cli.conftest import Cbench, complaint, strict
from tests.fixtures.small_suite import (
    FIRST,
    TASKS,
    publish_as_mirrored,
    write_mirror,
    write_predictions,
)

KEY = "suite:bbh:all"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A daemon that reads from a small mirror, in this process."""
    folder = tmp_path_factory.mktemp("suites")
    mirror = write_mirror(folder / "hub")
    with embedded(home=str(folder / "home"), data_dir=str(mirror)) as address:
        yield address


@pytest.fixture
def cbench(cbench: Cbench, daemon: str) -> Cbench:
    return partial(cbench, CBENCH_SERVER=daemon)


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> None:
    publish_as_mirrored(monkeypatch)


def predict(cbench: Cbench, tmp_path: Path, *flags: str, dataset: str = "bbh:all") -> object:
    """Run two predictors: one is wrong on the long task, one on two of the short ones."""
    long = write_predictions(tmp_path / "long.jsonl", [FIRST])
    short = write_predictions(tmp_path / "short.jsonl", TASKS[1:3])
    finished = cbench(
        "run",
        *("--predictions", long, "--predictions", short, "--dataset", dataset, "--quiet"),
        *flags,
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


@pytest.mark.usefixtures("whole")
def test_a_suite_is_one_run_with_the_mean_of_its_parts(cbench: Cbench, tmp_path: Path) -> None:
    document = strict(str(predict(cbench, tmp_path, "--output", "json")))
    long, short = document["summary"]["long"], document["summary"]["short"]
    assert long[KEY] == pytest.approx(26 / 27)
    assert short[KEY] == pytest.approx(25 / 27)
    # By rows the order would be the other way round.
    assert long["mean_score_with_failures"] == pytest.approx(26 / 30)
    assert short["mean_score_with_failures"] == pytest.approx(28 / 30)
    assert long[f"{KEY}_ci_low"] < long[KEY] < long[f"{KEY}_ci_high"] <= 1.0
    assert {row["dataset"] for row in document["rows"]} == {f"bbh:{task}" for task in TASKS}
    parts = document["config"]["datasets"]
    assert len(parts) == 27
    assert {part["protocol"]["axes"]["aggregation"]["status"] for part in parts} == {"same"}
    assert [suite["label"] for suite in document["config"]["suites"]] == ["bbh:all"]

    shown = cbench("show", document["run_id"]).stdout
    first = shown.splitlines()[0].split()
    assert first[:2] == ["System", "bbh:all"]
    assert "0.963" in shown.splitlines()[2]
    assert "bbh:all is not run as its authors do: prompt differs" in shown
    assert shown.count("is not run as its authors do") == 1
    listed = cbench("runs", "--limit", "1").stdout
    assert "bbh:all: long 0.963, short 0.926" in listed
    assert TASKS[5] not in listed

    compared = cbench("compare", document["run_id"], "--output", "json")
    pair = strict(compared.stdout)["pairs"][0]
    assert pair["score"] == "bbh:all"
    assert pair["difference"]["value"] == pytest.approx(1 / 27)
    assert (pair["mean_a"], pair["mean_b"]) == (pytest.approx(26 / 27), pytest.approx(25 / 27))

    passes = ("--policy", "score at least 0.95 as measured")
    passes += ("--policy", "bbh:all at least 0.95 as measured")
    passes += ("--policy", "score better than baseline as measured")
    gate = cbench(
        "gate", document["run_id"], "--system", "long", "--baseline-system", "short", *passes
    )
    assert gate.returncode == 0, gate.stdout + gate.stderr
    assert "passes, 3 of 3 policies hold" in gate.stdout

    rescored = cbench("rescore", document["run_id"], "--output", "json", "--quiet")
    assert strict(rescored.stdout)["summary"]["long"][KEY] == long[KEY]


@pytest.mark.usefixtures("whole")
def test_a_star_is_the_same_suite_and_a_list_of_its_parts_too(
    cbench: Cbench, tmp_path: Path
) -> None:
    flags = ("--output", "json")
    starred = strict(str(predict(cbench, tmp_path, *flags, dataset="bbh:*")))
    assert starred["summary"]["long"][KEY] == pytest.approx(26 / 27)
    listed = [word for task in TASKS[1:] for word in ("--dataset", f"bbh:{task}")]
    named = strict(str(predict(cbench, tmp_path, *flags, *listed, dataset=f"bbh:{FIRST}")))
    assert named["summary"]["long"][KEY] == pytest.approx(26 / 27)
    partly = strict(str(predict(cbench, tmp_path, *flags, *listed[2:], dataset=f"bbh:{FIRST}")))
    assert KEY not in partly["summary"]["long"]


def test_there_is_no_figure_where_a_mirror_lacks_examples(cbench: Cbench, tmp_path: Path) -> None:
    document = strict(str(predict(cbench, tmp_path, "--output", "json")))
    long = document["summary"]["long"]
    assert (long[KEY], long["suite_part:bbh:all"]) == (None, pytest.approx(26 / 27))
    assert f"{KEY}_ci_low" not in long
    assert "suite_part:bbh:all_ci_low" in long
    (note,) = [note for note in document["notes"] if note["code"] == "SUITE_INCOMPLETE"]
    assert note["text"] == (
        f"bbh:all has no figure: of the 250 examples of bbh:{FIRST} 4 were there, and 26 more "
        "parts lack some. It is given for complete parts only."
    )
    shown = cbench("show", document["run_id"]).stdout
    assert shown.splitlines()[0].split()[:4] == ["System", "bbh:all", "in", "part"]
    assert "0.963" in shown.splitlines()[2]
    assert f"bbh:{FIRST} is not run as its authors do: data differs (Of 250" in shown
    # Parts of other sizes differ by themselves; of what is equal nothing is said twice.
    assert "Each of 23 parts of bbh:all is not run as its authors do: data differs (Of 250" in shown
    assert shown.count("is not run as its authors do") == 6
    assert "bbh:all in part: long 0.963, short 0.926" in cbench("runs", "--limit", "1").stdout
    gate = cbench(
        "gate", document["run_id"], "--system", "long", "--policy", "bbh:all at least 0.1"
    )
    assert "not measured" in gate.stdout
    assert "26 more parts lack some" in gate.stdout
    pair = strict(cbench("compare", document["run_id"], "--output", "json").stdout)["pairs"][0]
    assert pair["score"] == "bbh_exact_match"


def test_there_is_no_figure_of_a_part_and_the_run_says_why(cbench: Cbench, tmp_path: Path) -> None:
    document = strict(str(predict(cbench, tmp_path, "-n", "2", "--output", "json")))
    assert document["summary"]["long"][KEY] is None
    (note,) = [note for note in document["notes"] if note["code"] == "SUITE_INCOMPLETE"]
    assert note["text"] == (
        "bbh:all has no figure: at most 2 examples of each part were asked for. "
        "It is given for complete parts only."
    )
    gate = cbench(
        "gate", document["run_id"], "--system", "long", "--policy", "score at least 0.1 as measured"
    )
    assert gate.returncode == 2
    assert "not measured" in gate.stdout
    assert "at most 2 examples of each part" in gate.stdout
    # Without a figure rows are compared as they are.
    pair = strict(cbench("compare", document["run_id"], "--output", "json").stdout)["pairs"][0]
    assert pair["score"] == "bbh_exact_match"


@pytest.mark.parametrize(
    ("dataset", "said"),
    [
        ("gsm8k:all", 'dataset "gsm8k" has no suite: no figure over all its configs is published'),
        ("longbench:*_x", 'has no suite "all_x"; it has: longbench:all, longbench:all_en'),
        ("bbh:al", 'dataset "bbh" has no config "al"'),
    ],
)
def test_what_is_no_suite_is_refused_with_what_there_is(
    cbench: Cbench, dataset: str, said: str
) -> None:
    assert said in complaint(cbench("run", "--builtin", "identity", "--dataset", dataset))


def test_a_card_names_the_suites_and_that_of_a_suite_has_a_line_for_each_part(
    cbench: Cbench,
) -> None:
    one = cbench("datasets", "show", "ruler:vt,length=1k").stdout
    assert "Suites:       ruler:all (13 configs)" in one
    subjects = cbench("datasets", "show", "mmlu").stdout
    assert "Suites:       mmlu:all (one config, or the 57 others named one by one)" in subjects
    made = cbench("datasets", "show", "ruler:all,length=1k").stdout
    assert "a suite is the mean of its configs, and for each length" in made
    assert "\nqa_2,length=1k " in made
    shown = cbench("datasets", "show", "longbench:*").stdout
    assert "Examples:     4,750\n" in shown
    assert "Figure:       Mean of the rows; a suite is the mean of its categories.\n" in shown
    lines = {line.split()[0]: line for line in shown.splitlines() if line}
    parts = [*registry.dataset("longbench").configs][:21]
    assert all(lines[part].endswith("same  differs  same    same") for part in parts)
    assert "longbench (task=trec)" in lines["trec"]
    assert "few-shot learning" in lines["trec"]
    document = strict(cbench("datasets", "show", "longbench:all", "--output", "json").stdout)
    assert [part["config"] for part in document["parts"]] == parts
    assert document["parts"][-1]["examples"] == 500


def test_a_card_says_all_that_a_config_declares(cbench: Cbench) -> None:
    shown = cbench("datasets", "show", "bbh:snarks").stdout
    titles = [line.partition(":")[0] for line in shown.splitlines()]
    for title in (
        *("Told", "Template", "Few-shot", "Responses", "Source", "Shown", "Withheld", "Answer"),
        *("Evaluators", "Score", "At worst", "Groups", "Figure"),
        *("Data", "Prompt", "Metric", "Aggregation"),
    ):
        assert title in titles, shown
    assert "Source:       SaylorTwift/bbh, newest revision, split test" in shown
    assert "Responses:    end after 1,024 tokens" in shown
    told = strict(cbench("datasets", "show", "bbh:snarks", "--output", "json").stdout)["prompt"]
    assert told["max_tokens"] == 1024
    assert told["instruction"] in shown
