"""A plain install, without extras: it evaluates, and names the command where one is missing."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from cbench_server.lazy_imports import EXTRAS, command_for

# Each command imports everything anew, which takes long on a busy machine.
pytestmark = pytest.mark.timeout(300)

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
ABSENT = (
    "ray",
    "datasets",
    "huggingface_hub",
    "pyarrow",
    "pandas",
    "polars",
    "math_verify",
    "sympy",
)

# Started before anything else by each Python of the test: the packages cannot be found.
BLOCKER = f"""
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {(*ABSENT, "jieba")!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: (
    None if name in {(*ABSENT, "jieba")!r} else found(name, package)
)
sys.meta_path.insert(0, Absent())
"""


@pytest.fixture
def plain(tmp_path: Path) -> dict[str, str]:
    """An environment whose Pythons have no extras."""
    (tmp_path / "sitecustomize.py").write_text(BLOCKER)
    kept = {key: value for key, value in os.environ.items() if not key.startswith("CBENCH_")}
    return {**kept, "PYTHONPATH": str(tmp_path), "CBENCH_HOME": str(tmp_path / "home")}


def cbench(plain: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cbench_server", *words]
    return subprocess.run(command, env=plain, capture_output=True, text=True, timeout=280)


def test_what_a_first_run_needs_is_in_a_plain_install(plain: dict[str, str]) -> None:
    datasets = ("mini-qa", "mini-summaries", "mini-choice", "mini-nli", "mini-instructions")
    named = [word for name in datasets for word in ("--dataset", name)]
    done = cbench(plain, "run", "--builtin", "truncate-head", *named, "-n", "2")
    assert done.returncode == 0, done.stderr
    assert "truncate-head" in done.stdout
    listed = cbench(plain, "evaluators", "--output", "json")
    assert '"math-equivalence"' in listed.stdout


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (("run", "--builtin", "identity", "--dataset", "hotpotqa", "-n", "2"), "hub"),
        (("run", "--builtin", "identity", "--dataset", "rows.parquet"), "parquet"),
        (("run", "--builtin", "identity", "--dataset", "mini-maths"), "math"),
        (("datasets", "download", "hotpotqa", "--to", "DIR"), "hub"),
    ],
    ids=["hub", "parquet", "math", "download"],
)
def test_an_absent_extra_is_named_with_its_command(
    words: tuple[str, ...], extra: str, plain: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "rows.parquet").write_bytes(b"PAR1")
    here = [str(tmp_path / word) if word in ("rows.parquet", "DIR") else word for word in words]
    done = cbench(plain, *here)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count(f"Install it with: {command_for(extra)}") == 1, done.stderr
    assert "Traceback" not in done.stderr


def test_a_daemon_without_ray_says_how_to_get_it(plain: dict[str, str]) -> None:
    command = [str(Path(sys.executable).with_name("cbench-server")), "--engine", "ray"]
    done = subprocess.run(command, env=plain, capture_output=True, text=True, timeout=280)
    assert done.returncode == 1
    assert done.stderr.count(command_for("ray")) == 1, done.stderr
    assert "Traceback" not in done.stderr


def test_a_run_cannot_be_written_as_parquet_without_its_extra(plain: dict[str, str]) -> None:
    run = ("run", "--builtin", "identity", "--dataset", "mini-qa", "-n", "1", "--output", "json")
    assert cbench(plain, *run).returncode == 0
    done = cbench(plain, "export", "last", "--format", "parquet")
    assert done.returncode == 2
    assert done.stderr.count(command_for("parquet")) == 1, done.stderr


def test_every_extra_that_is_named_exists_and_all_has_all() -> None:
    extras = PROJECT["optional-dependencies"]
    # The doctor tells of each.
    assert {*EXTRAS.values(), "all", "dev"} == extras.keys()
    (everything,) = extras["all"]
    assert set(re.findall(r"\w+", everything.partition("[")[2])) == extras.keys() - {
        "all",
        "dev",
        "ray",  # for clusters; larger than all else together
    }
    for package, extra in EXTRAS.items():
        # Which come with datasets, s3fs and the exporters.
        if package not in ("huggingface_hub", "fsspec", "opentelemetry.exporter"):
            names = [re.split(r"[^\w-]", each)[0] for each in extras[extra]]
            assert package.replace("_", "-") in names
