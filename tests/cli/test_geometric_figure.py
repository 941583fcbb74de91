"""SCROLLS' summaries: the geometric mean of three ROUGE means comes first wherever a figure is."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from cbench_server.daemon.embedded import embedded
from cbench_server.registry import registry
from tests.cli.conftest import Cbench, strict

PARTS = ("rouge_1_f1", "rouge_2_f1", "rouge_l_f1")
TEXTS = [
    ("the council agreed on the new budget", "the council agreed on a new budget in May"),
    ("nobody spoke about trains", "the committee spoke about buses and trains"),
    ("they will meet again on Monday", "they will meet again on Monday"),
    ("a plan for the park", "the park gets a plan and a bench"),
]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A daemon that reads from a small mirror, in this process."""
    folder = tmp_path_factory.mktemp("scrolls")
    mirror = folder / "hub/tau/scrolls/qmsum"
    mirror.mkdir(parents=True)
    rows = [
        {"id": str(number), "pid": str(number), "input": f"Who?\n\nA: {text}", "output": text}
        for number, (text, _) in enumerate(TEXTS)
    ]
    (mirror / "validation.jsonl").write_text("\n".join(map(json.dumps, rows)))
    before = registry.data_dir
    with embedded(home=str(folder / "home"), data_dir=str(folder / "hub")) as address:
        yield address
    # What it was given is this process's.
    registry.data_dir = before


@pytest.fixture
def cbench(cbench: Cbench, daemon: str) -> Cbench:
    return partial(cbench, CBENCH_SERVER=daemon)


def _predicted(cbench: Cbench, folder: Path, *flags: str) -> str:
    for name, responses in (("good", TEXTS), ("bad", TEXTS[::-1])):
        lines = [json.dumps({"id": str(n), "response": r}) for n, (_, r) in enumerate(responses)]
        (folder / f"{name}.jsonl").write_text("\n".join(lines))
    sides = [
        part for name in ("good", "bad") for part in ("--predictions", folder / f"{name}.jsonl")
    ]
    finished = cbench("run", *sides, "--dataset", "qmsum", "--quiet", *flags)
    assert finished.returncode == 0, finished.stderr
    return str(finished.stdout)


def test_it_comes_first_in_the_table_the_record_and_the_list(
    cbench: Cbench, tmp_path: Path
) -> None:
    table = _predicted(cbench, tmp_path)
    titles = [title.strip() for title in table.splitlines()[0].split("  ") if title.strip()]
    assert titles[:4] == ["System", "Geometric mean", "95% CI", "rouge_l_f1"]
    assert titles.count("95% CI") == 1
    assert "aggregation differs" not in table
    document = strict(_predicted(cbench, tmp_path, "--output", "json"))
    assert document["config"]["figure"] == {"key": "geometric_mean", "scores": [*PARTS]}
    values = document["summary"]["good"]
    product = 1.0
    for part in PARTS:
        product *= values[f"mean_score:{part}"]
    assert values["geometric_mean"] == pytest.approx(product ** (1 / 3))
    listed = cbench("runs").stdout
    assert f"geometric_mean: good {values['geometric_mean']:.3f}" in listed


def test_another_score_or_too_few_scores_are_said(cbench: Cbench, tmp_path: Path) -> None:
    chosen = _predicted(cbench, tmp_path, "--score-field", "rouge_1_f1")
    assert "The run counts rouge_1_f1 instead of rouge_l_f1" in chosen
    assert "Geometric mean" not in chosen
    few = _predicted(cbench, tmp_path, "--only-evaluators", "--evaluator", "summarization-quality")
    assert "The run has no rouge_1_f1 and no rouge_2_f1, so no geometric mean" in few
    metric = _predicted(cbench, tmp_path, "--metric", "mean-score")
    assert "Geometric mean" in metric.splitlines()[0]


def test_beside_other_datasets_it_is_the_figure_of_its_own(cbench: Cbench, tmp_path: Path) -> None:
    alone = strict(_predicted(cbench, tmp_path, "--output", "json"))
    both = strict(_predicted(cbench, tmp_path, "--dataset", "mini-summaries", "--output", "json"))
    key = "dataset:qmsum"
    assert both["summary"]["good"][key] == pytest.approx(alone["summary"]["good"]["geometric_mean"])
    assert "figure" not in both["config"]


def test_pairs_and_gates_say_what_they_stand_on(cbench: Cbench, tmp_path: Path) -> None:
    run = strict(_predicted(cbench, tmp_path, "--output", "json"))
    compared = cbench("compare", run["run_id"]).stdout
    assert "Pairs are compared by rouge_l_f1, row by row" in compared
    assert "the figure of qmsum is geometric_mean" in compared
    named = cbench("compare", run["run_id"], "--score-field", "rouge_1_f1").stdout
    assert "row by row" not in named
    flags = ("--system", "good", "--baseline-system", "bad", "--output", "json")
    policies = ("score at least 0 as measured", "geometric_mean at least 0 as measured")
    gate = ("gate", run["run_id"], *flags)
    given = [part for text in policies for part in ("--policy", text)]
    checks = strict(cbench(*gate, *given).stdout)
    figure = run["summary"]["good"]["geometric_mean"]
    assert [check["value"] for check in checks] == pytest.approx([figure, figure])
    paired = cbench(*gate[:-2], "--policy", "score better than baseline").stdout
    assert "score, row by row and no geometric_mean, against the baseline" in paired


def test_the_list_of_datasets_names_the_figure_that_a_run_shows(cbench: Cbench) -> None:
    lines = cbench("datasets").stdout.splitlines()
    listed = {line.split()[0]: line.split() for line in lines if line}
    for name in ("qmsum", "summscreenfd", "govreport"):
        assert "geometric_mean" in listed[name]
    assert "rouge_l_f1" in listed["dialogsum"]
