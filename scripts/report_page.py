"""Build the assets of the report from web/report, or `--check` that the committed ones are current.

Exits with 3 where npm is missing, so that a caller can tell that from a finding.
"""

import filecmp
import subprocess
import sys
import tempfile
from pathlib import Path

from npm_install import install

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "web" / "report"
ASSETS = ROOT / "cbench_server" / "reports" / "assets"


def main(arguments: list[str]) -> int:
    """Install what package-lock.json pins, unless it is there, check the types, and build."""
    if code := install(SOURCE, "vite", "the report is built by npm"):
        return code
    _run("node_modules/.bin/tsc", "--noEmit")
    if "--check" not in arguments:
        _run("node_modules/.bin/vite", "build")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        _run("node_modules/.bin/vite", "build", "--outDir", folder, "--logLevel", "warn")
        return _compare(Path(folder))


def _compare(built: Path) -> int:
    names = sorted({path.name for path in (*built.iterdir(), *ASSETS.iterdir())})
    _, different, missing = filecmp.cmpfiles(built, ASSETS, names, shallow=False)
    for name in (*different, *missing):
        stale = ASSETS.relative_to(ROOT) / name
        print(f"{stale} is not what web/report builds; run: python scripts/report_page.py")
    return 1 if different or missing else 0


def _run(*command: str) -> None:
    done = subprocess.run(command, cwd=SOURCE, check=False, stdout=sys.stderr)
    if done.returncode:
        sys.exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
