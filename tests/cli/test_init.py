"""`cbench init` writes systems that work as they are, each tried where its tools are."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from cbench_server.cli.commands.init import LANGUAGES, starter_of
from tests.cli.conftest import Cbench, complaint, strict

# Where nothing is cached, a compiler begins with its standard library.
_COMPILED = ("go", "rust", "java")


@pytest.mark.parametrize(
    "language",
    [
        pytest.param(each, marks=[pytest.mark.slow] if each in _COMPILED else [])
        for each in LANGUAGES
    ],
)
def test_a_starter_works_as_it_is(cbench: Cbench, tmp_path: Path, language: str) -> None:
    starter = starter_of(language)
    for tool in starter.tools:
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    folder = tmp_path / "mine"
    written = cbench("init", language, "--folder", folder)
    assert written.returncode == 0, written.stderr
    assert written.stdout.splitlines()[-1] == "cbench run --config run.toml"
    for step in (starter.build, starter.test):
        done = subprocess.run(
            step, shell=True, cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert cbench("config", "check", folder / "run.toml").returncode == 0
    flags = ["-c", folder / "run.toml", "-n", "6", "--controls", "none", "--output", "json"]
    found = strict(cbench("run", *flags).stdout)
    mine = [row for row in found["rows"] if row["system"] == "mine"]
    assert len(mine) == 6
    assert not any(row.get("failure") for row in mine)
    assert all(row["context_tokens_out"] < 0.5 * row["context_tokens_in"] for row in mine)
    assert sum(row["scores"]["answer_retained"] for row in mine) >= 4
    # Text that JSON writes with escapes comes through whole.
    hard = {
        "id": "x",
        "context": 'A "quoted" bridge\\. \u00e9\n\ttea.',
        "question": "Which bridge?",
    }
    (tmp_path / "hard.jsonl").write_text(json.dumps(hard) + "\n")
    flags = ["-c", folder / "run.toml", "--dataset", tmp_path / "hard.jsonl"]
    tried = strict(cbench("try", *flags, "--output", "json").stdout)
    assert tried[0]["processed"]["context"].startswith('A "quoted" bridge\\')


def test_nothing_is_overwritten(cbench: Cbench, tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text("mine")
    refused = cbench("init", "shell")
    assert refused.returncode == 2
    assert "is not overwritten" in complaint(refused)
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["run.toml"]
    assert 'Did you mean "python"?' in cbench("init", "pyhton").stderr
