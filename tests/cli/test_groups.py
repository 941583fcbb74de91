"""`--group-by`: the score on each group of rows, in a run and afterwards."""

import csv
import json
from functools import partial
from pathlib import Path

import pytest

from tests.cli.conftest import Cbench, complaint, strict


@pytest.fixture
def cbench(cbench: Cbench, daemon_address: str) -> Cbench:
    return partial(cbench, CBENCH_SERVER=daemon_address)


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    """Forty questions of two levels, with lengths from 1 to 40 and long texts beside."""
    path = tmp_path / "levels.jsonl"
    lines = [
        {
            "id": number,
            "context": f"The code is {number} and nothing else, said nobody at all.",
            "question": "code?",
            "answer": str(number),
            "level": "Level 2" if number % 4 else "Level 10",
            "length": number + 1,
            "notes": "x" * 100,
        }
        for number in range(40)
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


@pytest.fixture
def predictions(tmp_path: Path) -> list[Path]:
    """One predictor is right on Level 2 only, the other on everything."""
    paths = []
    for name, is_right in {"some": lambda n: n % 4, "all": lambda n: True}.items():
        path = tmp_path / f"{name}.jsonl"
        said = [{"id": n, "response": str(n) if is_right(n) else "no"} for n in range(40)]
        path.write_text("".join(f"{json.dumps(line)}\n" for line in said))
        paths.append(path)
    return paths


def run(cbench: Cbench, examples: Path, predictions: list[Path], *flags: str) -> str:
    given = [word for path in predictions for word in ("--predictions", str(path))]
    finished = cbench("run", *given, "--dataset", examples, "--quiet", *flags)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_every_output_of_a_run_has_its_groups(
    cbench: Cbench, examples: Path, predictions: list[Path]
) -> None:
    table = run(cbench, examples, predictions, "--group-by", "level,length")
    lines = table.splitlines()
    start = lines.index("Score by level")
    assert lines[start + 1].split()[:2] == ["level", "some"]
    assert [line.split()[:3] for line in lines[start + 3 : start + 5]] == [
        ["Level", "2", "1.000"],
        ["Level", "10", "0.000"],
    ]
    assert lines[start + 4].endswith("10 (few)")
    assert 'A group with fewer than 30 rows is marked "few"' in table
    # More than twenty numbers are put into bins.
    start = lines.index("Score by length")
    groups = [line.split("  ")[0] for line in lines[start + 3 : start + 9]]
    assert groups == ["1", "2 to 3", "4 to 7", "8 to 15", "16 to 31", "32 to 63"]

    document = strict(cbench("show", "last", "--output", "json").stdout)
    assert document["groups"]["level"]["Level 10"]["some"]["score"] == 0.0
    assert document["groups"]["level"]["Level 10"]["all"]["rows"] == 10
    assert document["summary"]["some"]["group:level=Level 2"] == 1.0
    rows = list(csv.DictReader(cbench("export", "last", "--format", "csv").stdout.splitlines()))
    assert [row["group:level"] for row in rows[:2]] == ["Level 10", "Level 2"]
    assert [row["group:length"] for row in rows[:2]] == ["1", "2"]
    page = cbench("export", "last", "--format", "markdown").stdout
    assert "## Score by level\n\n| level | some | 95% CI | all | 95% CI | Rows |" in page
    assert "group:level" not in page


def test_a_stored_run_is_grouped_by_any_field_of_its_examples(
    cbench: Cbench, examples: Path, predictions: list[Path]
) -> None:
    run(cbench, examples, predictions)
    shown = cbench("show", "last", "--group-by", "level").stdout
    assert "Score by level" in shown
    assert "Level 10" in shown
    exported = cbench("export", "last", "--format", "csv", "--group-by", "level").stdout
    assert exported.splitlines()[0].count("group:level") == 1
    refused = complaint(cbench("show", "last", "--group-by", "levle"))
    assert refused == (
        'group_by: no example has a field "levle". Did you mean "level"? '
        "Fields to group by: length, level, config, dataset"
    )

    compared = strict(cbench("compare", "last", "--group-by", "level", "--output", "json").stdout)
    by_level = {each["group"]: each["pair"] for each in compared["groups"]}
    assert by_level["Level 10"]["difference"]["value"] == -1.0
    assert by_level["Level 2"]["difference"]["value"] == 0.0
    # Holm for two groups.
    assert by_level["Level 10"]["p_adjusted"] == pytest.approx(2 * by_level["Level 10"]["p"])
    assert by_level["Level 10"]["comparisons"] == 2
    assert by_level["Level 10"]["is_claimed"] is True
    text = cbench("compare", "last", "--group-by", "level").stdout
    assert "Difference by level" in text


def test_an_unknown_field_is_refused_before_the_run_begins(
    cbench: Cbench, examples: Path, predictions: list[Path]
) -> None:
    finished = cbench(
        "run", "--predictions", predictions[0], "--dataset", examples, "--group-by", "subject"
    )
    assert finished.returncode == 2
    assert complaint(finished) == (
        '--group-by: no example has a field "subject". '
        "Fields to group by: length, level, config, dataset"
    )


def test_a_field_with_too_many_values_is_named_and_not_shown(
    cbench: Cbench, tmp_path: Path
) -> None:
    path = tmp_path / "many.jsonl"
    lines = [
        {"id": n, "context": "a b", "question": "?", "answer": "a", "name": f"n{n}"}
        for n in range(201)
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    finished = cbench("run", "--builtin", "identity", "--dataset", path, "--group-by", "name")
    assert "name has 201 different values, more than the 200 groups that are shown." in (
        finished.stdout
    )
    assert "Score by name" not in finished.stdout
