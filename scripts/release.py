"""`make release`: build every package into dist/, check it, and use each from an empty environment.

Nothing is published; docs/releasing.md has the commands that do. What a missing toolchain leaves
out is named at the end, and is a failure on CI. `make release ONLY=python` does one of them.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from release_checks import check_archive, check_changelog, check_tree
from version import version

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
TOOLS = ROOT / ".venv-release" / "bin"
_SYSTEM = 'import { serve } from "cbench-client";\nserve({ name: "n", process: (e) => e });\n'


def build_python(work: Path) -> None:
    """Build wheels and sdists, and run the command from a wheel, an sdist and uvx."""
    for folder in (ROOT / "clients" / "python", ROOT):
        _call([TOOLS / "uv", "build", "--quiet", "--out-dir", DIST, folder])
    number = version()
    wheels = [DIST / f"cbench_{name}-{number}-py3-none-any.whl" for name in ("client", "server")]
    sdists = [DIST / f"cbench_{name}-{number}.tar.gz" for name in ("client", "server")]
    _call([TOOLS / "twine", "check", "--strict", *wheels, *sdists])
    for archive in (*wheels, *sdists):
        check_archive(archive)
    for kind, archives in (("wheel", wheels), ("sdist", sdists)):
        _use_python(work / kind, archives)
    started = [TOOLS / "uv", "tool", "run", "--quiet", "--with", wheels[0], "--from", wheels[1]]
    _call([*started, "cbench", "--version"], cwd=work)
    _call([*started, "cbench-server", "--help"], cwd=work)


def _use_python(folder: Path, archives: list[Path]) -> None:
    began = time.monotonic()
    _call([sys.executable, "-m", "venv", folder])
    empty = _size(folder)
    _call([folder / "bin" / "pip", "install", "--quiet", *archives], cwd=folder)
    took, weighs = time.monotonic() - began, _size(folder) - empty
    environment = {**os.environ, "CBENCH_HOME": str(folder / "home")}
    cbench = folder / "bin" / "cbench"
    run = ["run", "--builtin", "truncate-head", "--dataset", "mini-qa", "-n", "4"]
    _call([cbench, *run], cwd=folder, env=environment)
    python = folder / "bin" / "python"
    _call([python, "-m", "cbench_server", "--version"], cwd=folder, env=environment)
    print(f"installed {archives[1].name}: {weighs / 1e6:.0f} MB, {took:.0f} s", flush=True)


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*"))


def build_npm(work: Path) -> None:
    """Pack the Node SDK, install it into an empty folder and serve a system from there."""
    sdk = ROOT / "clients" / "node"
    if not (sdk / "node_modules").exists():
        _call(["npm", "ci", "--ignore-scripts", "--loglevel=error"], cwd=sdk)
    _call(["npm", "pack", "--loglevel=error", "--pack-destination", DIST], cwd=sdk)
    archive = DIST / f"cbench-client-{version()}.tgz"
    check_archive(archive)
    (work / "package.json").write_text('{"type": "module", "private": true}\n')
    _call(["npm", "install", "--loglevel=error", archive], cwd=work)
    (work / "system.js").write_text(_SYSTEM)
    _evaluate("node system.js", work)


def build_crate(work: Path) -> None:
    """Package the crate, which builds it as packed, and build a program that depends on it."""
    sdk = ROOT / "clients" / "rust"
    target = {**os.environ, "CARGO_TARGET_DIR": str(sdk / "target" / "release-check")}
    _call(["cargo", "package", "--quiet", "--locked", "--allow-dirty"], cwd=sdk, env=target)
    name = f"cbench-client-{version()}"
    packed = Path(target["CARGO_TARGET_DIR"]) / "package" / f"{name}.crate"
    shutil.copy(packed, DIST)
    check_archive(DIST / packed.name)
    shutil.unpack_archive(packed, work, "gztar")
    # The example that the crate comes with is the program: a stranger has nothing else yet.
    _call(["cargo", "build", "--quiet", "--example", "hello"], cwd=work / name, env=target)
    _evaluate(str(Path(target["CARGO_TARGET_DIR"]) / "debug" / "examples" / "hello"), work)


def build_go(work: Path) -> None:
    """Tag a copy of the repository as a release is tagged, and fetch the module by that tag."""
    tag = f"clients/go/v{version()}"
    copy = work / "repository"
    _call(["git", "clone", "--quiet", "--bare", ROOT, copy])
    _call(["git", "tag", "--force", tag, "HEAD"], cwd=copy)
    module = "github.com/cbench/cbench-server"
    settings = {
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": f"url.file://{copy}.insteadOf",
        "GIT_CONFIG_VALUE_0": f"https://{module}",
        "GIT_CONFIG_KEY_1": "safe.directory",
        "GIT_CONFIG_VALUE_1": "*",
        "GOPRIVATE": module,
        "GOFLAGS": "-mod=mod -modcacherw",
        "GOMODCACHE": str(work / "modules"),
    }
    program = work / "program"
    program.mkdir()
    hello = ROOT / "clients" / "go" / "examples" / "hello" / "main.go"
    shutil.copy(hello, program)
    environment = {**os.environ, **settings}
    _call(["go", "mod", "init", "example.com/hello"], cwd=program, env=environment)
    wanted = f"{module}/clients/go@v{version()}"
    _call(["go", "get", wanted], cwd=program, env=environment)
    _call(["go", "build", "-o", "hello", "."], cwd=program, env=environment)
    held = list((work / "modules").glob(f"{module}/clients/go@*/LICENSE"))
    if not held:
        raise SystemExit(f"the module at {tag} has no LICENSE")
    _evaluate(str(program / "hello"), work)
    print(f"the Go module is released by the tag {tag}", flush=True)


def _evaluate(command: str, folder: Path) -> None:
    """Evaluate what was built, as a user would."""
    environment = {**os.environ, "CBENCH_HOME": str(folder / "home")}
    cbench = Path(sys.executable).parent / "cbench"
    run = [cbench, "run", "--launch", command, "--dataset", "mini-qa", "-n", "4"]
    _call(run, cwd=folder, env=environment)


def _call(command: list[object], **settings: object) -> None:
    words = [str(word) for word in command]
    print("$ " + " ".join(words).replace(f"{ROOT}/", ""), flush=True)
    done = subprocess.run(words, check=False, **{"cwd": ROOT, **settings})  # type: ignore[call-overload]  # the settings are run's own
    if done.returncode:
        raise SystemExit(f"`{' '.join(words)}` failed with {done.returncode}")


# Each with the command that it needs.
PACKAGES: dict[str, tuple[str, Callable[[Path], None]]] = {
    "python": ("python3", build_python),
    "npm": ("npm", build_npm),
    "crate": ("cargo", build_crate),
    "go": ("go", build_go),
}


def main(only: list[str]) -> int:
    """Do every package, or those that are named."""
    if unknown := [name for name in only if name not in PACKAGES]:
        print(f"no package {unknown[0]}. Known: {', '.join(PACKAGES)}")
        return 2
    check_tree()
    check_changelog()
    DIST.mkdir(exist_ok=True)
    skipped = []
    for name, (needs, build) in PACKAGES.items():
        if only and name not in only:
            continue
        if shutil.which(needs) is None:
            skipped.append(f"{name} ({needs} is not installed)")
            continue
        with tempfile.TemporaryDirectory(prefix=f"cbench-{name}-") as work:
            build(Path(work))
    if not only:
        _call([sys.executable, "scripts/sbom.py", "dist/sbom.cdx.json"])
    print("dist/ has: " + ", ".join(sorted(path.name for path in DIST.iterdir())))
    for each in skipped:
        print(f"skipped: {each}")
    return 1 if skipped and os.environ.get("CI") == "true" else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
