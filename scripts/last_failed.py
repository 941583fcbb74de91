"""Run the tests that failed last once more, one at a time; for .ci/run.

With more of them than the number given, or none, the run stays failed: something is wrong at large.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FAILED = ROOT / ".pytest_cache" / "v" / "cache" / "lastfailed"


def main(most: int) -> int:
    """Return what pytest returns for the tests that failed."""
    tests = sorted(json.loads(FAILED.read_text())) if FAILED.exists() else []
    if not 1 <= len(tests) <= most:
        print(f"{len(tests)} tests failed; from 1 to {most} would be run once more")
        return 1
    print(*(f"UNSTEADY, if it passes now: {test}" for test in tests), sep="\n", flush=True)
    command = [sys.executable, "-m", "pytest", "-rs", "-n", "0", *tests]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
