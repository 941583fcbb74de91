"""Virtual environments, made once and remade only when their packages change.

Called by make with the `python3` it finds, so the first lines also run on old ones.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - this file is run by any python3
    sys.exit(
        "cbench-server needs Python 3.11 or newer, and {} is {}.{}. "
        "Name another: make PYTHON=python3.12 demo".format(sys.executable, *sys.version_info[:2])
    )

import hashlib
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD, BASE, DEV = "constraints/build.txt", "constraints/base.txt", "constraints/dev.txt"
PROTOS, RELEASE = "constraints/protos.txt", "constraints/release.txt"
DOCS, INSPECT = "constraints/docs.txt", "constraints/inspect.txt"
ADAPTERS, RAY = "constraints/adapters.txt", "constraints/ray.txt"
DEPLOY = "constraints/deploy.txt"
OURS = ["clients/python", "."]
INPUTS = [BUILD, BASE, DEV, "pyproject.toml", "setup.py", "clients/python/pyproject.toml"]

# Each with its folder, the packages of others and ours, the inputs that decide whether it is up to
# date, and the kinds that it includes.
KINDS = {
    "base": (".venv", [BASE], OURS, INPUTS, []),
    "dev": (".venv", [BASE, DEV], OURS, INPUTS, ["base"]),
    "protos": (".venv-protos", [PROTOS], [], [PROTOS], []),
    "release": (".venv-release", [RELEASE], [], [RELEASE], []),
    "docs": (".venv-docs", [DOCS], [], [DOCS], []),
    "inspect": (".venv-inspect", [INSPECT], [], [INSPECT], []),
    "deploy": (".venv-deploy", [DEPLOY], [], [DEPLOY], []),
    "ray": (".venv-ray", [BASE, RAY], OURS, [*INPUTS, RAY], []),
    "adapters": (
        ".venv-adapters",
        [ADAPTERS],
        ["clients/python"],
        [BUILD, ADAPTERS, "clients/python/pyproject.toml"],
        [],
    ),
}
# A node of Ray gives its agent 15 seconds to start, in which a slow machine does not compile it.
COMPILED = ("ray",)


def main(kind: str) -> None:
    """Bring one kind of environment up to date."""
    folder, pinned, ours, inputs, covered = KINDS[kind]
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
    pip = [str(python), "-m", "pip", "--disable-pip-version-check"]
    # Most modules are never imported; Python compiles those that are when they are.
    # The pins name all that is wanted. Asked to look for more, pip takes a package's extra for a
    # wish of its own, whose newest version is not the pinned one from the day there is a newer.
    install = [*pip, "install", "--quiet", "--no-compile", "--no-build-isolation", "--no-deps"]
    hint = "Is the package index reachable?"
    if ours:  # first, because some packages come as source only, and setuptools builds them
        _run([*install, "--require-hashes", "-r", BUILD], hint)
    _run([*install, "--require-hashes", *_each("-r", pinned)], hint)
    if ours:
        _run([*install, *_each("-e", ours)], hint)
    _run([*pip, "check"], "Is a package that another wants not pinned? Run scripts/pin.sh")
    if kind in COMPILED:
        # Some files of packages are templates, which no Python compiles.
        command = [str(python), "-m", "compileall", "-qq", "-j", "0", f"{folder}/lib"]
        subprocess.run(command, cwd=ROOT, check=False)
    for each in (kind, *covered):
        (ROOT / folder / f"cbench-{each}.stamp").write_text(stamp)
    print(f"{folder} is ready ({time.monotonic() - started:.0f} s)", file=sys.stderr)


def _each(flag: str, values: "list[str]") -> "list[str]":
    return [word for value in values for word in (flag, value)]


def _stamp(inputs: "list[str]") -> str:
    # The place and the interpreter belong to it: a moved checkout is installed again.
    digest = hashlib.sha256(f"{ROOT} {sys.version_info[:2]}".encode())
    for path in inputs:
        digest.update((ROOT / path).read_bytes())
    return digest.hexdigest()


def _run(command: "list[str]", hint: str) -> None:
    done = subprocess.run(command, cwd=ROOT, check=False, stdout=sys.stderr)
    if done.returncode:
        sys.exit(f"`{' '.join(command)}` failed; its messages are above. {hint}")


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in KINDS:
        sys.exit(f"usage: setup_venv.py {'|'.join(KINDS)}")
    main(sys.argv[1])
