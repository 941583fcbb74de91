"""Flags for launching on a Ray cluster: what is refused, before anything is started."""

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
