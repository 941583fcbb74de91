"""`cbench export`: every format, by name or by suffix."""

import csv
import io
import json
import xml.etree.ElementTree as ElementTree
from functools import partial
from pathlib import Path

import pyarrow.parquet
import pytest

from tests.cli.conftest import CBENCH, Cbench, complaint, strict
from tests.fixtures import preloaded


@pytest.fixture
def stored(cbench: Cbench, daemon_address: str) -> Cbench:
    """`cbench` with a daemon that has a run of eight rows."""
    served = partial(cbench, CBENCH_SERVER=daemon_address)
    finished = served(
        "run",
        "--dataset",
        "mini-qa",
        "-n",
        "4",
        "--quiet",
        "--builtin",
        "identity",
        "--builtin",
        "truncate-tail",
    )
    assert finished.returncode == 0, finished.stderr
    return served


def test_text_formats_go_to_stdout(stored: Cbench) -> None:
    markdown = stored("export", "last", "--format", "markdown").stdout
    assert markdown.startswith("# Evaluation Results")
    assert "| truncate-tail |" in markdown
    document = strict(stored("export", "last", "--format", "json").stdout)
    assert len(document["rows"]) == 8
    lines = stored("export", "last", "--format", "jsonl").stdout.splitlines()
    assert [json.loads(line)["system"] for line in lines] == ["identity"] * 4 + [
        "truncate-tail"
    ] * 4
    table = list(csv.DictReader(io.StringIO(stored("export", "last", "--format", "csv").stdout)))
    assert [row["system"] for row in table] == [json.loads(line)["system"] for line in lines]
    tests = ElementTree.fromstring(stored("export", "last", "--format", "junit").stdout)
    assert len(tests.findall(".//testcase")) == 8


def test_a_files_suffix_tells_the_format(stored: Cbench, tmp_path: Path) -> None:
    written = stored("export", "last", "-o", "rows.parquet")
    assert written.returncode == 0, written.stderr
    assert written.stdout == ""
    assert written.stderr.startswith("rows.parquet (")
    assert pyarrow.parquet.read_table(tmp_path / "rows.parquet").num_rows == 8
    assert stored("export", "last", "-o", "rows.XML").returncode == 0
    assert (tmp_path / "rows.XML").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("words", "complaint_has"),
    [
        (["-o", "rows.xyz"], ['"rows.xyz"', "--format", "parquet"]),
        ([], ["stdout", "--format", "markdown"]),
        (["--format", "parket"], ['no reporter "parket"', "parquet"]),
        (["--format", "inspct"], ['no reporter "inspct"; did you mean "inspect"?']),
        (["--format", "zzz"], ['no reporter "zzz". Known: ', " inspect,", " run,"]),
        (["--format", "csv", "-o", "missing/rows.csv"], ["missing/rows.csv"]),
    ],
    ids=["suffix", "nothing", "typo", "typo-of-a-log", "unknown", "folder"],
)
def test_what_cannot_be_done_is_said(
    stored: Cbench, words: list[str], complaint_has: list[str]
) -> None:
    refused = stored("export", "last", *words)
    assert refused.returncode == 2
    for part in complaint_has:
        assert part in complaint(refused)


@pytest.fixture
def shouting(cbench: Cbench, tmp_path: Path) -> Cbench:
    """`cbench` where a module `shouting` can be imported, which registers a reporter."""
    (tmp_path / "shouting.py").write_text(
        "from cbench_server.registry import register_reporter\n"
        "register_reporter('shout', lambda report: [report.run.systems[0].upper()])\n"
    )
    return partial(cbench, PYTHONPATH=str(tmp_path))


_RUN = ("run", "--dataset", "mini-qa", "-n", "1", "--builtin", "identity", "--quiet")


def test_a_registered_reporter_is_a_format(shouting: Cbench) -> None:
    made = shouting(*_RUN)
    assert made.returncode == 0, made.stderr
    shouted = shouting("export", "last", "--format", "shout", "--import", "shouting")
    assert (shouted.returncode, shouted.stdout) == (0, "IDENTITY"), shouted.stderr


def test_a_registered_reporter_prints_a_run_that_has_just_ended(shouting: Cbench) -> None:
    shouted = shouting(*_RUN, "--output", "shout", "--import", "shouting")
    assert (shouted.returncode, shouted.stdout) == (0, "IDENTITY"), shouted.stderr
    rescored = shouting("rescore", "last", "--output", "shout", "--import", "shouting", "--quiet")
    assert (rescored.returncode, rescored.stdout) == (0, "IDENTITY"), rescored.stderr


def test_an_output_that_nobody_registers_is_refused_before_anything_runs(
    shouting: Cbench,
) -> None:
    refused = shouting(*_RUN, "--output", "shuot", "--import", "shouting")
    assert refused.returncode == 2
    assert complaint(refused).startswith('no --output "shuot". Did you mean "shout"?')
    assert strict(shouting("runs", "--output", "json").stdout) == []


@pytest.mark.parametrize("name", ["junit", "parquet"])
def test_a_run_can_end_in_every_format_of_export(
    environment: dict[str, str], name: str, tmp_path: Path
) -> None:
    path = tmp_path / "output"
    with path.open("wb") as stdout:
        done = preloaded.run(
            [str(CBENCH), *_RUN, "--output", name],
            stdout=stdout,
            env=environment,
            check=False,
        )
    assert done.returncode == 0
    if name == "parquet":
        assert pyarrow.parquet.read_table(path).num_rows == 1
    else:
        assert len(ElementTree.parse(path).findall(".//testcase")) == 1
