"""The seed of the suite: what it decides, and what is none."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.chance import SEED

ROOT = Path(__file__).resolve().parents[2]


def test_chance_is_the_same_with_workers_and_without(chance: random.Random) -> None:
    here = "test_seed.py test_chance_is_the_same_with_workers_and_without"
    assert chance.random() == random.Random(f"{SEED} {here}").random()


@pytest.mark.parametrize("seed", ["abc", "-1", "1.5", "²", "1 2"])
def test_a_seed_that_no_run_prints_is_refused(seed: str) -> None:
    refused = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "faults.py")],
        env={**os.environ, "SEED": seed},
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 2
    assert refused.stdout == (
        f"SEED={seed} is no seed; give the number that an earlier run printed, or none.\n"
    )
