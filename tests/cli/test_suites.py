"""Suites: all configs of a dataset in one run, with the figure that is published for them."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from cbench_server.daemon.embedded import embedded
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


def test_a_card_names_the_suites(cbench: Cbench) -> None:
    finished = cbench("datasets", "show", "ruler:all,length=1k")
    assert "Suites:       ruler:all (13 configs)" in finished.stdout
    assert "a suite is the mean of its configs, and for each length" in finished.stdout
