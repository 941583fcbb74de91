"""What the tests of the SDKs share: a toolchain or a skip, and commands that must succeed."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "scripts"))
import example_systems  # noqa: E402 - scripts are no package

BIN = Path(sys.executable).parent
CBENCH = BIN / "cbench"
# Compiling everything from nothing, on two cores that others use as well.
LONG_SECONDS = 1200

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


def needs(program: str) -> None:
    """Skip what follows where a program of the toolchain is missing."""
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")


def build_example(name: str, folder: Path) -> Path:
    """Build one of the demo's systems, and with it its SDK; return where the SDK is.

    Tests run side by side, and this lets one of them build it.
    """
    every = (*example_systems.WITHOUT_COMPILER, *example_systems.COMPILED)
    (system,) = (each for each in every if each.name == name)
    for tool in system.tools:
        needs(tool)
    example_systems.build(system, folder / f"build-{name}.log", print)
    return system.folder


def run(*command: str | Path, cwd: Path = ROOT, **environment: str) -> str:
    """Run a command that must succeed, with our commands on the path; return its stdout."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=LONG_SECONDS,
    )
    output = f"{done.stdout}\n{done.stderr}"
    assert done.returncode == 0, f"{' '.join(map(str, command))} in {cwd}:\n{output}"
    return done.stdout


def fences(page: Path, language: str) -> list[str]:
    """Return the blocks of code in one language that a page shows."""
    return [body for kind, body in FENCE.findall(page.read_text()) if kind == language]


def follow(page: Path, folder: Path, clone: Path = ROOT, **environment: str) -> str:
    """Type the shell commands of a page in an empty folder; return what they print."""
    folder.mkdir()
    script = "\n".join(["set -euo pipefail", *fences(page, "sh")])
    home = str(folder.parent / "home")
    return run("bash", "-c", script, cwd=folder, CBENCH=str(clone), CBENCH_HOME=home, **environment)


def evaluate(*arguments: str | Path, home: Path) -> dict[str, Any]:
    """Evaluate with `cbench run`, and return what it says of the run."""
    output = run(*(CBENCH, "run", "--quiet", "--output", "json", *arguments), CBENCH_HOME=str(home))
    report: dict[str, Any] = json.loads(output)
    return report


def conformance(known_failing: Path, *program: str | Path, home: Path) -> dict[str, Any]:
    """Run the conformance suite against a program, and return its report."""
    output = run(
        *(CBENCH, "conformance", "--known-failing", known_failing, "--output", "json"),
        *("--", *program),
        CBENCH_HOME=str(home),
    )
    report: dict[str, Any] = json.loads(output)
    return report
