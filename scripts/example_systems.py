"""Example systems that `make demo` compares, in several languages, and their builds."""

import fcntl
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CLIENTS = ROOT / "clients"
NODE = CLIENTS / "node"
PINNED_EMBEDDING = ROOT / "constraints" / "embedding.txt"
EMBEDDING = ROOT / ".demo" / "embedding"

Command = tuple[str, ...]


class NotBuilt(Exception):
    """A system cannot take part; the message says why."""


@dataclass(frozen=True)
class ExampleSystem:
    """A program that serves one system, and the tools that build it."""

    name: str
    language: str
    program: Command
    tools: tuple[str, ...] = ()
    folder: Path = ROOT
    build: tuple[Command, ...] = ()
    embeds: bool = False
    """Whether it wants the package with embeddings, which is kept beside the environment."""

    @property
    def launch(self) -> str:
        """The command for `--launch`."""
        packages = ("env", f"PYTHONPATH={EMBEDDING}") if self.embeds else ()
        return shlex.join((*packages, *self.program))


def python_example(name: str, file: str, *, embeds: bool = False) -> ExampleSystem:
    """Describe a program of examples/python."""
    return ExampleSystem(name, "Python", (sys.executable, f"examples/python/{file}"), embeds=embeds)


EXTRACTIVE = python_example("extractive", "extractive.py")
RETRIEVER = python_example("embedding-retriever", "embedding_retriever.py", embeds=True)
MEMORY = python_example("embedding-memory", "embedding_memory.py", embeds=True)
WITHOUT_COMPILER = (
    python_example("python-lexrank", "lexrank.py"),
    EXTRACTIVE,
    python_example("bm25-passages", "bm25.py"),
    RETRIEVER,
    ExampleSystem(
        name="keyword-in-context",
        language="Node",
        program=("node", "clients/node/examples/keyword-in-context.js"),
        tools=("node", "npm"),
        folder=NODE,
        build=(
            ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"),
            ("npm", "run", "--silent", "build"),
        ),
    ),
)
COMPILED = (
    ExampleSystem(
        name="go-bm25",
        language="Go",
        program=("clients/go/bin/bm25",),
        tools=("go",),
        folder=CLIENTS / "go",
        build=(("go", "build", "-o", "bin/", "./examples/bm25"),),
    ),
    ExampleSystem(
        name="rust-dedup",
        language="Rust",
        program=("clients/rust/target/debug/examples/dedup",),
        tools=("cargo",),
        folder=CLIENTS / "rust",
        build=(("cargo", "build", "--quiet", "--locked", "--example", "dedup"),),
    ),
)


def build(system: ExampleSystem, log: Path, say: Callable[[str], None]) -> None:
    """Build a system unless that is done, with the tools' output in a file.

    Raises NotBuilt where a tool is missing or fails, with the way out.
    """
    for tool in system.tools:
        if shutil.which(tool) is None:
            raise NotBuilt(f"{tool} is not installed")
    with alone_in(system.folder):
        if system.embeds:
            install_embedding(log, say)
        if not system.build or (system.folder == NODE and is_node_built()):
            return
        say(f"building {system.name} with {system.build[-1][0]}; the first time takes a while")
        with log.open("w") as output:
            for command in system.build:
                done = subprocess.run(
                    command, cwd=system.folder, stdout=output, stderr=subprocess.STDOUT, check=False
                )
                if done.returncode:
                    what = f"`{shlex.join(command)}` failed in {system.folder}"
                    raise NotBuilt(f"{what}; {log} says why")


def install_embedding(log: Path, say: Callable[[str], None]) -> None:
    """Install the package with the embeddings beside the environment, unless it is there."""
    stamp, pinned = EMBEDDING / "pinned.txt", PINNED_EMBEDDING.read_text()
    if stamp.exists() and stamp.read_text() == pinned:
        return
    say("getting the embeddings (wordllama, 19 MB); once")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--no-deps"]
    install += ["--disable-pip-version-check", "--upgrade", "--target", str(EMBEDDING)]
    install += ["--require-hashes", "-r", str(PINNED_EMBEDDING)]
    with log.open("w") as output:
        done = subprocess.run(install, stdout=output, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        raise NotBuilt(f"pip could not install wordllama; {log} says why")
    stamp.write_text(pinned)


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Keep others who ask out of a folder: two builds at once would spoil each other."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def is_node_built() -> bool:
    """Tell whether the Node SDK is newer than all it is made of; npm takes seconds to find out."""
    # All of it: the compiler writes only what has changed.
    built = [*NODE.glob("dist/**/*.js")]
    installed = NODE / "node_modules" / ".package-lock.json"
    if not built or not installed.exists():
        return False
    is_installed = newest([NODE / "package-lock.json"]) <= newest([installed])
    sources = [NODE / "tsconfig.json", *NODE.glob("src/**/*.ts")]
    return is_installed and newest(sources) <= newest(built)


def newest(paths: Iterable[Path]) -> float:
    """Return when the last of the files was written."""
    return max(path.stat().st_mtime for path in paths)
