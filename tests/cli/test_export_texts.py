"""Exports with texts, and as a log that the real Inspect AI reads."""

import csv
import json
import os
import subprocess
from pathlib import Path

import pyarrow.parquet
import pytest

from tests.fixtures import preloaded

ROOT = Path(__file__).resolve().parents[2]
INSPECT = ROOT / ".venv-inspect" / "bin" / "python"
TEXTS = ["question", "context", "answer", "processed_context", "response"]
# Answers by what it finds, fails on one example, and shortens the context.
ANSWERS = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    example = asked["example"]
    if example["id"] == "two":
        answer = {"id": asked["id"], "error": "not today"}
    else:
        changed = {**example, "context": example["context"][:9], "response": "=In Rome."}
        answer = {"id": asked["id"], "example": changed}
    print(json.dumps(answer), flush=True)
"""
EXAMPLES = [
    {"id": "one", "context": "It is in Rome, they say.", "question": "Where?", "answer": "Rome"},
    {"id": "two", "context": "Nobody knows.", "question": "Who?", "answer": ["Ann", "Bo"]},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("texts")
    (folder / "answers.py").write_text(ANSWERS)
    rows = "".join(json.dumps(each) + "\n" for each in EXAMPLES)
    (folder / "places.jsonl").write_text(rows)
    done = cbench(
        folder, "run", "--exec", "python answers.py", "--name", "guess", "--dataset", "places.jsonl"
    )
    assert done.returncode == 0, done.stderr
    return folder


def cbench(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "CBENCH_HOME": str(folder / "home")}
    command = [str(preloaded.CBENCH), *words]
    return preloaded.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def exported(folder: Path, name: str, *flags: str) -> Path:
    done = cbench(folder, "export", "last", "-o", name, *flags)
    assert done.returncode == 0, done.stderr
    return folder / name


def test_csv_has_columns_of_texts_that_no_spreadsheet_runs(folder: Path) -> None:
    with exported(folder, "rows.csv", "--with-texts").open(newline="") as file:
        one, two = csv.DictReader(file)
    assert [one[name] for name in TEXTS] == [
        *("Where?", EXAMPLES[0]["context"], "Rome", "It is in ", "'=In Rome.")
    ]
    assert two["answer"] == '["Ann", "Bo"]'
    assert two["failure"]
    assert two["response"] == ""
    with exported(folder, "plain.csv").open(newline="") as file:
        assert not {*TEXTS} & {*(csv.DictReader(file).fieldnames or ())}


def test_parquet_has_the_same_columns(folder: Path) -> None:
    table = pyarrow.parquet.read_table(exported(folder, "rows.parquet", "--with-texts"))
    one, two = table.to_pylist()
    assert one["response"] == "=In Rome."
    assert one["processed_context"] == "It is in "
    assert two["response"] is None
    assert two["question"] == "Who?"


def test_jsonl_has_the_whole_example_and_the_whole_answer(folder: Path) -> None:
    lines = exported(folder, "rows.jsonl", "--with-texts").read_text().splitlines()
    one, two = map(json.loads, lines)
    assert one["original"]["question"] == "Where?"
    assert one["processed"]["response"] == "=In Rome."
    assert two["original"]["answer"] == ["Ann", "Bo"]
    assert two["processed"] is None


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (
            ("--format", "junit", "--with-texts"),
            "only csv, jsonl, parquet are written with texts, not junit. Drop --with-texts",
        ),
        (("--format", "csv", "--system", "guess"), "Drop --system, or pass --format inspect"),
        (("--format", "inspect", "--system", "nobody"), 'no system "nobody" in this run'),
        (("--format", "run", "--with-texts"), "Drop --with-texts"),
    ],
    ids=["format", "system", "unknown", "whole"],
)
def test_flags_that_do_not_go_together_are_refused(
    flags: tuple[str, ...], told: str, folder: Path
) -> None:
    done = cbench(folder, "export", "last", *flags)
    assert done.returncode == 2
    assert told in done.stderr


READ = """
import json, sys
from inspect_ai.log import read_eval_log, read_eval_log_samples

log = read_eval_log(sys.argv[1])
samples = list(read_eval_log_samples(sys.argv[1], all_samples_required=False))
print(json.dumps({
    "status": log.status,
    "model": log.eval.model,
    "metrics": sorted(log.results.scores[0].metrics),
    "samples": [
        {
            "id": each.id,
            "input": each.input,
            "target": each.target,
            "said": each.output.completion,
            "scores": {name: score.as_float() for name, score in (each.scores or {}).items()},
            "error": each.error.message if each.error else None,
        }
        for each in samples
    ],
}))
"""


@pytest.mark.slow  # importing inspect-ai takes ten seconds of CPU
@pytest.mark.timeout(400)
def test_inspect_ai_reads_its_log(folder: Path) -> None:
    if not (INSPECT.parents[1] / "cbench-inspect.stamp").exists():
        assert os.environ.get("CI") != "true", "CI installs it: scripts/setup_venv.py inspect"
        pytest.skip("inspect-ai is not installed: python scripts/setup_venv.py inspect")
    path = exported(folder, "guess.json", "--format", "inspect")
    done = subprocess.run([INSPECT, "-c", READ, path], capture_output=True, text=True, timeout=380)
    assert done.returncode == 0, done.stderr
    log = json.loads(done.stdout)
    assert log["status"] == "success"
    assert log["model"] == "cbench/guess"
    assert "mean_score" in log["metrics"]
    one, two = log["samples"]
    assert one["said"] == "=In Rome."
    assert one["target"] == "Rome"
    assert one["scores"]["f1"] > 0
    assert two["target"] == ["Ann", "Bo"]
    assert "not today" in two["error"]


def test_rows_are_divided_into_a_folder_that_other_programs_read_as_one_table(
    folder: Path,
) -> None:
    names = ["100% a=c ü", "plain"]
    systems = [word for name in names for word in ("--exec", "python answers.py", "--name", name)]
    done = cbench(folder, "run", *systems, "--dataset", "places.jsonl")
    assert done.returncode == 0, done.stderr
    whole = pyarrow.parquet.read_table(exported(folder, "two.parquet", "--with-texts"))
    divided = exported(folder, "divided", "--partition-by", "system", "--with-texts")
    assert {path.name for path in divided.iterdir()} == {
        "system=100%25 a%3Dc %C3%BC",
        "system=plain",
    }
    for read in (_with_pyarrow, _with_polars):
        rows = read(divided)
        assert sorted(rows, key=str) == sorted(_few(whole), key=str)
    finer = exported(folder, "finer", "--partition-by", "system", "--partition-by", "dataset")
    assert (finer / "system=plain" / "dataset=places" / "rows.parquet").is_file()


def _few(table: pyarrow.Table) -> list[tuple[str, ...]]:
    columns = ("system", "dataset", "example_id", "context", "response", "score")
    return [tuple(row[name] for name in columns) for row in table.to_pylist()]


def _with_pyarrow(divided: Path) -> list[tuple[str, ...]]:
    return _few(pyarrow.parquet.read_table(divided))


def _with_polars(divided: Path) -> list[tuple[str, ...]]:
    import polars

    return _few(polars.scan_parquet(divided, hive_partitioning=True).collect().to_arrow())


def test_a_divided_export_replaces_nothing_and_says_what_it_wants(folder: Path) -> None:
    (folder / "there").mkdir()
    for words, said in (
        (("-o", "there"), "there exists already"),
        ((), "name it with -o"),
        (("-o", "x", "--format", "csv"), "goes with parquet, not csv"),
        (("-o", "no/such/place"), "cannot write no/such/place"),
    ):
        done = cbench(folder, "export", "last", "--partition-by", "system", *words)
        assert done.returncode == 2, done.stdout
        assert said in done.stderr
    assert not any(path.name.startswith(".") for path in folder.iterdir())
