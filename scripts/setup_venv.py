"""Make a virtual environment once, and again only when what it should hold has changed.

Called by make with the `python3` it finds, so the first lines also run on old ones.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - this file is run by whatever python3 is
    sys.exit(
        "cbench-server needs Python 3.11 or newer, and {} is {}.{}. "
        "Name another: make PYTHON=python3.12 demo".format(sys.executable, *sys.version_info[:2])
    )

import hashlib
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STUBS_REQUIREMENTS = ROOT / "scripts" / "protos-requirements.txt"
INPUTS = [ROOT / "constraints.txt", ROOT / "pyproject.toml", ROOT / "clients/python/pyproject.toml"]
PINNED = ["-c", "constraints.txt", "-e", "clients/python", "-e"]

# Which environment, what goes into it, which files decide that, and what it also covers.
KINDS = {
    "base": (".venv", [*PINNED, "."], INPUTS, ()),
    "dev": (".venv", [*PINNED, ".[dev]"], INPUTS, ("base",)),
    "protos": (".venv-protos", ["-r", str(STUBS_REQUIREMENTS)], [STUBS_REQUIREMENTS], ()),
}


def main(kind: str) -> None:
    """Bring one kind of environment up to date."""
    folder, packages, inputs, covered = KINDS[kind]
    python = ROOT / folder / "bin" / "python"
    stamp = _stamp(inputs)
    noted = ROOT / folder / f"cbench-{kind}.stamp"
    if python.exists() and noted.exists() and noted.read_text() == stamp:
        return
    started = time.monotonic()
    print(f"setting up {folder} (once; about a minute) ...", file=sys.stderr, flush=True)
    if not python.exists():
        _run(
            [sys.executable, "-m", "venv", "--clear", folder],
            "Is the venv module installed? On Debian: apt install python3-venv",
        )
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    # Most modules are never imported; Python compiles those that are when they are.
    _run([*pip, "--no-compile", *packages], "Is the package index reachable?")
    for each in (kind, *covered):
        (ROOT / folder / f"cbench-{each}.stamp").write_text(stamp)
    print(f"{folder} is ready ({time.monotonic() - started:.0f} s)", file=sys.stderr)


def _stamp(inputs: "list[Path]") -> str:
    # The place and the interpreter belong to it: a moved checkout is installed again.
    digest = hashlib.sha256(f"{ROOT} {sys.version_info[:2]}".encode())
    for path in inputs:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _run(command: "list[str]", hint: str) -> None:
    done = subprocess.run(command, cwd=ROOT, check=False)
    if done.returncode:
        sys.exit(f"`{' '.join(command)}` failed; its messages are above. {hint}")


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in KINDS:
        sys.exit(f"usage: setup_venv.py {'|'.join(KINDS)}")
    main(sys.argv[1])
