"""Flags for launching on a Ray cluster: what is refused, before anything is started."""

import tomllib
from pathlib import Path

import pytest

from tests.cli.conftest import Cbench, complaint

LAUNCH = ("--launch", "python nothing.py", "--engine", "ray")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--builtin", "identity", "--engine", "ray"), "nothing is launched"),
        (("--launch", "x", "--resources", "GPU=1"), "--resources needs --engine ray"),
        (("--launch", "x", "--ray-address", "auto"), "--ray-address needs --engine ray"),
        ((*LAUNCH, "--resources", "GPU"), '"GPU" is no resource; write it as CPU=2'),
        ((*LAUNCH, "--resources", "CPU=1,memory=lots"), '"memory=lots" is no resource'),
        ((*LAUNCH, "--resources", "CPU=-1"), '"CPU=-1" is no resource'),
        ((*LAUNCH, "--resources", "CPU=1,CPU=2"), "CPU stands twice"),
    ],
)
def test_what_nothing_would_heed_is_refused(
    cbench: Cbench, words: tuple[str, ...], said: str
) -> None:
    finished = cbench("run", *words, "--dataset", "mini-qa")
    assert finished.returncode == 2
    assert said in complaint(finished)


@pytest.mark.parametrize(
    ("words", "resources", "said"),
    [
        ((), "GPU=1", 'resources = "GPU=1" in the run file needs --engine ray'),
        (("--engine", "ray"), "GPU", '"GPU" is no resource'),
    ],
)
def test_resources_of_a_run_file_are_refused_alike(
    cbench: Cbench, tmp_path: Path, words: tuple[str, ...], resources: str, said: str
) -> None:
    asked = tmp_path / "run.toml"
    asked.write_text(
        f"""[[systems]]
launch = "python nothing.py"
resources = "{resources}"
replicas = 2
[[datasets]]
name = "mini-qa"
"""
    )
    finished = cbench("run", "--config", str(asked), *words)
    assert finished.returncode == 2
    assert said in complaint(finished)


def test_resources_and_replicas_of_flags_are_kept_in_a_run_file(
    cbench: Cbench, tmp_path: Path
) -> None:
    asked = tmp_path / "run.toml"
    asked.write_text('[[datasets]]\nname = "mini-qa"\n')
    needs = ("--resources", "GPU=0.5,memory=8GB", "--replicas", "3")
    shown = cbench("config", "show", "--config", str(asked), *LAUNCH, *needs)
    (system,) = tomllib.loads(shown.stdout)["systems"]
    assert (system["resources"], system["replicas"]) == ("GPU=0.5,memory=8589934592", 3)
