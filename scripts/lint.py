"""`make lint`: every check runs, so that one run shows all there is to fix."""

import os
import subprocess
import sys
from pathlib import Path

from npm_install import NO_NPM

ROOT = Path(__file__).resolve().parent.parent
IS_CI = os.environ.get("CI") == "true"

PYTHON = sys.executable
STUBS_PYTHON = ".venv-protos/bin/python"
BUF = [PYTHON, "scripts/buf.py"]
NEEDS_NPM = ("scripts/buf.py", "scripts/report_page.py", "scripts/web_format.py")
# Their imports are in .venv-protos only.
OF_STUBS = ("gen_protos", "check_protos", "typed_dicts")

CHECKS: dict[str, list[str]] = {
    "format": [PYTHON, "-m", "ruff", "format", "--check", "--quiet", "."],
    "ruff": [PYTHON, "-m", "ruff", "check", "--quiet", "."],
    "types": [
        PYTHON,
        "-m",
        "mypy",
        "--no-error-summary",
        "cbench_server",
        "clients/python/cbench_client",
        "clients/python/tests/typed_usage.py",
        "examples/python",
        *(str(path) for path in sorted(ROOT.glob("scripts/*.py")) if path.stem not in OF_STUBS),
    ],
    "contract": [*BUF, "lint"],
    "contract against the released one": [*BUF, "breaking", "--against", "protos/released.binpb"],
    "stubs": [STUBS_PYTHON, "scripts/check_protos.py"],
    "generated statements": [PYTHON, "scripts/gen_statements.py", "--check"],
    "generated docs": [PYTHON, "scripts/gen_docs.py", "--check"],
    "docs of the command line": [PYTHON, "scripts/gen_cli_docs.py", "--check"],
    "format of web/": [PYTHON, "scripts/web_format.py", "--check"],
    "the report's page": [PYTHON, "scripts/report_page.py", "--check"],
    "one version": [PYTHON, "scripts/version.py"],
    "paths and registries": [PYTHON, "scripts/check_tracked.py"],
}


def main() -> int:
    """Run every check; return 1 if one found something, or was skipped on CI."""
    failed, skipped = [], []
    for name, command in CHECKS.items():
        done = subprocess.run(
            command, cwd=ROOT, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        if done.returncode == NO_NPM and command[1] in NEEDS_NPM:
            skipped.append(name)
            outcome = "skipped"
        else:
            outcome = "ok" if done.returncode == 0 else "FAILED"
            failed += [name] if done.returncode else []
        print(f"{name:34} {outcome}", flush=True)
        if done.returncode:
            sys.stdout.buffer.write(done.stdout)
            sys.stdout.flush()
    if skipped:
        print(f"skipped, because npm is not installed: {', '.join(skipped)}")
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed or (skipped and IS_CI) else 0


if __name__ == "__main__":
    sys.exit(main())
