"""The tool buf, which comes from npm: `buf.py lint`, `buf.py breaking ...`.

Exits with 3 where npm is missing, which a caller can tell from a finding.
"""

import subprocess
import sys
from pathlib import Path

from npm_install import install

ROOT = Path(__file__).resolve().parent.parent


def main(arguments: list[str]) -> int:
    """Install what package-lock.json pins, unless it is there, and run it."""
    if code := install(ROOT, "buf", "buf comes from npm"):
        return code
    buf = ROOT / "node_modules" / ".bin" / "buf"
    return subprocess.run([buf, *arguments], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
