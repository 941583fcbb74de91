"""The committed stubs are what protos/ gives."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
GENERATOR = ROOT / ".venv-protos" / "bin" / "python"


@pytest.mark.skipif(not GENERATOR.exists(), reason="no .venv-protos; `make test` makes it")
def test_stubs_are_what_the_protos_give() -> None:
    done = subprocess.run(
        [GENERATOR, ROOT / "scripts" / "check_protos.py"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
