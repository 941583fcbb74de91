"""npm packages, installed as a package-lock.json pins them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

NO_NPM = 3
"""The exit code where npm is missing, so that a caller can tell that from a finding."""


def install(folder: Path, program: str, complaint: str) -> int:
    """Install what the folder's lock file pins, unless `program` of it is there and current.

    Returns an exit code; `complaint` is what to say where npm is missing.
    """
    npm = shutil.which("npm")
    if npm is None:
        print(f"{complaint}, which is not installed here", file=sys.stderr)
        return NO_NPM
    if _is_current(folder, program):
        return 0
    # Binaries are separate packages; no install script is needed.
    command = [npm, "ci", "--ignore-scripts", "--loglevel=error"]
    done = subprocess.run(command, cwd=folder, stdout=sys.stderr, check=False)
    return 1 if done.returncode else 0


def _is_current(folder: Path, program: str) -> bool:
    noted = folder / "node_modules" / ".package-lock.json"
    return (
        os.access(folder / "node_modules" / ".bin" / program, os.X_OK)
        and noted.exists()
        and noted.stat().st_mtime >= (folder / "package-lock.json").stat().st_mtime
    )
