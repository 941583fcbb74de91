"""Rounds of a benchmark in this checkout and in another, in turn, each in a fresh process."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]


def run_in(checkout: Path, script: str, *arguments: str) -> Any:
    """Run a benchmark of ours with the interpreter and the code of a checkout; it prints JSON."""
    checkout = checkout.resolve()
    command = [checkout / ".venv/bin/python", Path(__file__).with_name(script), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    return json.loads(subprocess.check_output(command, cwd=checkout, env=environment))
