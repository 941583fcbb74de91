"""Suites: all configs of a dataset in one run, with the figure that is published for them."""

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cbench_server.daemon.embedded import embedded
from cbench_server.datasets.catalog.mmlu_subjects import MMLU_CATEGORIES, MMLU_SUBJECTS
from cbench_server.datasets.record import DatasetRecord
from cbench_server.registry import registry
from tests.cli.conftest import Cbench, complaint, strict
from tests.fixtures.small_suite import (
    FIRST,
    TASKS,
    publish_as_mirrored,
    write_lines,
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


@pytest.mark.usefixtures("whole")
def test_another_split_has_no_figure(cbench: Cbench, tmp_path: Path) -> None:
    mirror = write_mirror(tmp_path / "hub")
    for path in [*mirror.rglob("test.jsonl")]:
        path.rename(path.with_name("train.jsonl"))
    with embedded(home=str(tmp_path / "home"), data_dir=str(mirror)) as address:
        asked = ("--builtin", "identity", "--dataset", "bbh:all", "--split", "train", "--json")
        document = strict(cbench("run", *asked, "--quiet", CBENCH_SERVER=address).stdout)
    assert document["summary"]["identity"][KEY] is None
    (note,) = [note for note in document["notes"] if note["code"] == "SUITE_INCOMPLETE"]
    assert "bbh:all has no figure: the split train was asked for." in note["text"]


def test_a_config_with_all_rows_is_a_suite_as_its_parts_are(
    cbench: Cbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two subjects have more rows than others: the mean is that of all rows."""
    counts = {subject: 2 + 5 * (place < 2) for place, subject in enumerate(MMLU_SUBJECTS)}
    published = counts | {"all": sum(counts.values())}
    monkeypatch.setattr(DatasetRecord, "size_of", lambda self, config="": published.get(config))
    rows = [
        {"question": f"{subject} {at}?", "subject": subject, "choices": [*"uvwx"], "answer": 1}
        for subject, count in counts.items()
        for at in range(count)
    ]
    folder = tmp_path / "hub" / "cais" / "mmlu"
    write_lines(folder / "all" / "test.jsonl", rows)
    for subject in counts:
        own = [row for row in rows if row["subject"] == subject]
        write_lines(folder / subject / "test.jsonl", own)

    def figures(name: str, answers: Iterable[Any], *datasets: str) -> dict[str, float]:
        path = write_lines(tmp_path / f"{name}.jsonl", answers)
        named = [word for each in datasets for word in ("--dataset", f"mmlu:{each}")]
        with embedded(home=str(tmp_path / name), data_dir=str(tmp_path / "hub")) as address:
            asked = ("--predictions", str(path), *named, "--quiet", "--output", "json")
            finished = cbench("run", *asked, CBENCH_SERVER=address)
        summary = strict(finished.stdout)["summary"][name]
        return {key: value for key, value in summary.items() if key.startswith("suite")}

    # Only the first subject is answered rightly; it counts among those of STEM.
    said = [{"response": "B" if row["subject"] == MMLU_SUBJECTS[0] else "C"} for row in rows]
    whole = figures("one", [{"id": at, **each} for at, each in enumerate(said)], "all")
    ids = [at for count in counts.values() for at in range(count)]
    parts = figures(
        "many",
        [
            {"dataset": f"mmlu:{row['subject']}", "id": at, **each}
            for row, at, each in zip(rows, ids, said, strict=True)
        ],
        *MMLU_SUBJECTS,
    )
    assert whole["suite:mmlu:all"] == parts["suite:mmlu:all"] == pytest.approx(7 / len(rows))
    of_stem = sum(counts[subject] for subject, kind in MMLU_CATEGORIES.items() if kind == "STEM")
    key = "suite:mmlu:all/category=STEM"
    assert whole[key] == parts[key] == pytest.approx(7 / of_stem)
    assert whole["suite:mmlu:all/category=humanities"] == 0.0
    published["all"] += 1
    cut = figures("cut", [{"id": at, **each} for at, each in enumerate(said)], "all")
    assert cut["suite:mmlu:all"] is None
    assert cut["suite_part:mmlu:all"] == whole["suite:mmlu:all"]


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
