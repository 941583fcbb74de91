"""Run buf, which comes from npm: `buf.py lint`, `buf.py breaking ...`.

Exits with 3 where npm is missing, so that a caller can tell that from a finding.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUF = ROOT / "node_modules" / ".bin" / "buf"
NO_NPM = 3


def main(arguments: list[str]) -> int:
    """Install what package-lock.json pins, unless it is there, and run it."""
    npm = shutil.which("npm")
    if npm is None:
        print("buf comes from npm, which is not installed here", file=sys.stderr)
        return NO_NPM
    if not _is_current():
        # The binary is in a package of its own; no install script is needed.
        install = [npm, "ci", "--ignore-scripts", "--loglevel=error"]
        done = subprocess.run(install, cwd=ROOT, stdout=sys.stderr, check=False)
        if done.returncode:
            return 1
    return subprocess.run([BUF, *arguments], cwd=ROOT, check=False).returncode


def _is_current() -> bool:
    noted = ROOT / "node_modules" / ".package-lock.json"
    return (
        os.access(BUF, os.X_OK)
        and noted.exists()
        and noted.stat().st_mtime >= (ROOT / "package-lock.json").stat().st_mtime
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
