"""Format the sources in web/ with prettier, or `--check` that they are formatted.

Exits with 3 where npm is missing, so that a caller can tell that from a finding.
"""

import subprocess
import sys
from pathlib import Path

from npm_install import install

SOURCE = Path(__file__).resolve().parent.parent / "web" / "report"


def main(arguments: list[str]) -> int:
    """Install what package-lock.json pins, unless it is there, and run it."""
    if code := install(SOURCE, "prettier", "prettier comes from npm"):
        return code
    how = "--check" if "--check" in arguments else "--write"
    command = ["node_modules/.bin/prettier", how, "--log-level", "warn", "."]
    return subprocess.run(command, cwd=SOURCE, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
