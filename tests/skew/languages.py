"""The programs of each SDK, in this tree or in a frozen one, and how a frozen one is built."""

import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.fixtures.sdks import (
    GO,
    LONG_SECONDS,
    NODE,
    NPM_CI,
    RUST,
    Commands,
    Sdk,
    built,
    needs,
    run,
)
from tests.skew.freeze import FOLDER, ROOT, VOCABULARIES


@dataclass(frozen=True)
class Language:
    """An SDK's programs, by paths that hold in every version of the tree."""

    name: str
    folder: str
    interpreter: tuple[str, ...]
    system: str
    memory: str
    evaluator: str
    attach: tuple[str, ...]
    drive: tuple[str, ...]
    attached: str
    """What the attaching program calls itself."""
    judge: str
    """What the evaluator calls itself."""
    score: str
    driven: str
    """What the driving program prints in the end."""
    sdk: Sdk | None = None
    build: Commands = ()
    environment: Mapping[str, str] = field(default_factory=dict, hash=False)


LANGUAGES = (
    Language(
        "python",
        "examples/python",
        (sys.executable,),
        system="hello_system.py",
        memory="hello_memory.py",
        evaluator="hello_evaluator.py",
        attach=("attached.py",),
        drive=("follow_a_run.py",),
        attached="first-and-last",
        judge="same-length",
        score="same_length",
        driven=": 10 rows",
    ),
    Language(
        "node",
        "clients/node/examples",
        ("node",),
        system="hello-system.js",
        memory="hello-memory.js",
        evaluator="hello-evaluator.js",
        attach=("attached.js",),
        drive=("follow-a-run.js",),
        attached="both-ends",
        judge="brevity",
        score="brevity",
        driven="succeeded",
        sdk=NODE,
        build=(NPM_CI, ("npm", "run", "--silent", "build")),
    ),
    Language(
        "go",
        "clients/go/bin",
        (),
        system="hello",
        memory="hello-memory",
        evaluator="hello-evaluator",
        attach=("attach", "-daemon"),
        drive=("drive", "-daemon"),
        attached="first-words",
        judge="same-length",
        score="same_length",
        driven="RUN_STATE_SUCCEEDED, 40 rows",
        sdk=GO,
        build=(("go", "build", "-o", "bin/", "./examples/..."),),
        environment=GO.environment,
    ),
    Language(
        "rust",
        "clients/rust/target/debug/examples",
        (),
        system="hello",
        memory="hello_memory",
        evaluator="hello_evaluator",
        attach=("attach",),
        drive=("drive",),
        attached="first-words",
        judge="same-length",
        score="same_length",
        driven="RUN_STATE_SUCCEEDED, 40 rows",
        sdk=RUST,
        build=(("cargo", "build", "--quiet", "--locked", "--examples"),),
        # It finds the dependencies that this tree's SDK has in common with it compiled.
        environment=RUST.outside,
    ),
)


@dataclass(frozen=True)
class Tree:
    """A version of everything: this one, or one that was frozen."""

    root: Path

    @property
    def environment(self) -> dict[str, str]:
        """What Python needs to take this version's packages, and not those installed."""
        folders = (self.root, self.root / "clients" / "python")
        return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}

    def start(self, command: list[str], **environment: str) -> subprocess.Popen[str]:
        """Start a process of this version in its folder, where Python looks first."""
        return subprocess.Popen(
            command,
            cwd=self.root,
            stdout=subprocess.PIPE,
            text=True,
            env={**self.environment, **environment},
        )

    def command(self, language: Language, program: str, *arguments: str) -> list[str]:
        """Return how to start a program of an SDK, which is built."""
        path = self.root / language.folder / program
        return [*language.interpreter, str(path), *arguments]

    def build(self, language: Language) -> None:
        """Build an SDK of this version, unless that is done, or it needs no building."""
        sdk = language.sdk
        if sdk is None:
            return
        if self.root == ROOT:
            built(sdk)
            return
        needs(*sdk.tools)
        folder = self.root / "clients" / language.name
        done = folder / ".built"
        if not done.exists():
            for command in language.build:
                # From nothing, if nothing of this tree is compiled, beside whatever else runs.
                run(*command, cwd=folder, seconds=3 * LONG_SECONDS, **language.environment)
            done.touch()


def frozen(version: str, folder: Path) -> Tree:
    """Unpack what was frozen."""
    with tarfile.open(FOLDER / f"{version}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    shutil.copytree(ROOT / VOCABULARIES, folder / VOCABULARIES)
    return Tree(folder)
