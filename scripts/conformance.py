"""`make conformance`: the suite, for every SDK whose toolchain is installed."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CLIENTS = ROOT / "clients"
CBENCH = Path(sys.executable).parent / "cbench"
IS_CI = os.environ.get("CI") == "true"

Command = tuple[str, ...]


@dataclass(frozen=True)
class Sdk:
    """How to build an SDK's conformance program, and how to start it."""

    name: str
    version: Command
    build: tuple[Command, ...]
    program: Command

    @property
    def folder(self) -> Path:
        return CLIENTS / self.name


SDKS = (
    Sdk(
        "python",
        (sys.executable, "--version"),
        (),
        (sys.executable, str(CLIENTS / "python" / "conformance" / "program.py")),
    ),
    Sdk(
        "go",
        ("go", "version"),
        (("go", "build", "-o", "bin/", "./conformance"),),
        (str(CLIENTS / "go" / "bin" / "conformance"),),
    ),
    Sdk(
        "rust",
        ("cargo", "--version"),
        (("cargo", "build", "--quiet", "--locked", "--example", "conformance"),),
        (str(CLIENTS / "rust" / "target" / "debug" / "examples" / "conformance"),),
    ),
    Sdk(
        "node",
        ("node", "--version"),
        (
            ("npm", "ci", "--ignore-scripts", "--loglevel=error"),
            ("npm", "run", "--silent", "build"),
        ),
        ("node", str(CLIENTS / "node" / "conformance" / "program.js")),
    ),
)


def main() -> int:
    """Check every SDK; return 1 if one fails, or was skipped on CI."""
    has_failed, skipped = False, []
    print(f"{'SDK':8}{'cases':>7}{'passed':>8}{'failed':>8}{'known':>7}  with", flush=True)
    for sdk in SDKS:
        tool = sdk.version[0]
        if shutil.which(tool) is None:
            skipped.append(f"{sdk.name} ({tool} is not installed)")
            continue
        report = check(sdk)
        counts = report["counts"]
        failed = counts.get("failed", 0) + counts.get("surprise", 0)
        has_failed = has_failed or failed > 0
        print(
            f"{sdk.name:8}{len(report['cases']):7}{counts.get('passed', 0):8}{failed:8}"
            f"{counts.get('known', 0):7}  {report['sdk']}, {version_of(sdk)}",
            flush=True,
        )
        for line in complaints(report):
            print(line)
    if skipped:
        print(f"skipped: {', '.join(skipped)}")
    return 1 if has_failed or (skipped and IS_CI) else 0


def version_of(sdk: Sdk) -> str:
    """Ask the toolchain which version it is."""
    said = subprocess.run(sdk.version, check=True, capture_output=True, text=True).stdout.strip()
    return f"node {said}" if sdk.name == "node" else said


def check(sdk: Sdk) -> dict[str, Any]:
    """Build the SDK's program, run the suite against it, and return its report."""
    for command in sdk.build:
        # The output of a build matters only if it fails, and then it is on stderr.
        subprocess.run(command, cwd=sdk.folder, check=True, stdout=subprocess.DEVNULL)
    known_failing = sdk.folder / "conformance" / "known-failing.txt"
    done = subprocess.run(
        [
            str(CBENCH),
            "conformance",
            "--known-failing",
            str(known_failing),
            "--output=json",
            "--",
            *sdk.program,
        ],
        check=False,
        stdout=subprocess.PIPE,
        text=True,
    )
    if not done.stdout:
        sys.exit(f"{sdk.name}: the suite could not be run")
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def complaints(report: dict[str, Any]) -> Iterator[str]:
    """Say what is wrong with each case that failed."""
    for case in report["cases"]:
        if case["status"] in ("failed", "surprise"):
            yield f"  {case['name']}: {case['why']}"


if __name__ == "__main__":
    sys.exit(main())
