"""Start-up costs: a short run, `--help`, a daemon, and the memory of an idle one.

    python benchmarks/startup.py [--against REV] [--repeats N]

measures this tree and another revision of it in turn, so that only ratios count and a
slow minute hits both. REV is taken out of git into a temporary folder; both run with this
interpreter and its packages, from compiled files. Each figure is a median of N.

- run: `cbench run --launch "python my_system.py" --dataset mini-qa -n 48`, wall time and CPU,
  its own and the launched system's, on a store that exists and on a new one;
- help: `cbench --help`;
- daemon: `cbench-server` on an existing store until it listens; and what it then holds in
  memory, on an existing store and on a new one.
"""

import argparse
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PRESENT = "1c4a8c8"

SYSTEM = """\
from cbench_client import serve


def echo(example: dict) -> dict:
    return {**example, "response": example["question"]}


serve(echo)
"""


@dataclass
class Tree:
    """One revision, with its own store and its measurements."""

    name: str
    folder: Path
    home: Path
    figures: dict[str, list[float]] = field(default_factory=dict)

    def command(self, script: str, *arguments: str) -> list[str]:
        """Return how to start one of its console scripts."""
        scripts = tomllib.loads((self.folder / "pyproject.toml").read_text())["project"]["scripts"]
        module, _, function = scripts[script].partition(":")
        code = f"import sys; from {module} import {function}; sys.exit({function}())"
        return [sys.executable, "-c", code, *arguments]

    def environment(self, home: Path) -> dict[str, str]:
        """Return variables with which only its own modules are found."""
        path = os.pathsep.join(map(str, (self.folder, self.folder / "clients" / "python")))
        own = {name: value for name, value in os.environ.items() if not name.startswith("CBENCH_")}
        return {**own, "PYTHONPATH": path, "CBENCH_HOME": str(home)}

    def note(self, figure: str, value: float) -> None:
        """Remember one measurement."""
        self.figures.setdefault(figure, []).append(value)


def measure_command(tree: Tree, figure: str, command: list[str], home: Path) -> None:
    """Note wall time and CPU of a command, with all that it has started and waited for."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        command, cwd=home.parent, env=tree.environment(home), capture_output=True, check=False
    )
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{tree.name}: {figure} failed: {done.stderr.decode()}")
    tree.note(f"{figure}, s", wall)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    tree.note(f"{figure}, s of CPU", cpu)


def measure_daemon(tree: Tree, figure: str, home: Path) -> None:
    """Note how long a daemon takes to listen, and what it then holds in memory."""
    command = tree.command("cbench-server", "--address", "127.0.0.1:0", "--log-level", "error")
    start = time.perf_counter()
    with subprocess.Popen(
        command, cwd=home.parent, env=tree.environment(home), stdout=subprocess.PIPE
    ) as daemon:
        assert daemon.stdout is not None
        if not daemon.stdout.readline().startswith(b"cbench|"):
            sys.exit(f"{tree.name}: the daemon does not listen")
        tree.note(f"{figure} listens, s", time.perf_counter() - start)
        time.sleep(0.5)  # What it does after listening is over.
        status = Path(f"/proc/{daemon.pid}/status").read_text()
        held = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
        tree.note(f"{figure} idle, MB", int(held.split()[1]) / 1024)
        daemon.send_signal(signal.SIGTERM)


def measure(tree: Tree, system: Path) -> None:
    """Take every measurement once."""
    short_run = tree.command(
        "cbench",
        "run",
        "--launch",
        f"{sys.executable} {system}",
        "--dataset=mini-qa",
        "-n48",
    )
    measure_command(tree, "run", short_run, tree.home)
    new = tree.home.with_name("new-store")
    measure_command(tree, "run, new store", short_run, new)
    shutil.rmtree(new)
    measure_command(tree, "help", tree.command("cbench", "--help"), tree.home)
    measure_daemon(tree, "daemon", tree.home)
    measure_daemon(tree, "daemon, new store,", new)
    shutil.rmtree(new)


@contextmanager
def checked_out(revision: str) -> Iterator[Path]:
    """Take a revision out of git into a folder that is removed again."""
    with tempfile.TemporaryDirectory(prefix="cbench-startup-") as folder:
        archive = subprocess.run(
            ["git", "archive", revision], cwd=ROOT, check=True, stdout=subprocess.PIPE
        )
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        yield Path(folder)


def show(here: Tree, other: Tree) -> None:
    """Print the medians and their ratios."""
    print(f"{'':34}{'here':>9}{other.name:>12}{'ratio':>8}")
    for figure, values in here.figures.items():
        ours, theirs = statistics.median(values), statistics.median(other.figures[figure])
        print(f"{figure:34}{ours:>9.2f}{theirs:>12.2f}{ours / theirs:>8.2f}")


def main() -> None:
    """Measure both trees in turn."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--against", default=PRESENT, metavar="REV", help=f"default: {PRESENT}")
    parser.add_argument("--repeats", type=int, default=7, metavar="N")
    args = parser.parse_args()
    with checked_out(args.against) as folder, tempfile.TemporaryDirectory() as work:
        trees = []
        for name, place in (("here", ROOT), (args.against, folder)):
            (Path(work) / name).mkdir()
            trees.append(Tree(name, place, Path(work) / name / "store"))
        system = Path(work) / "my_system.py"
        system.write_text(SYSTEM)
        for tree in trees:
            measure(tree, system)  # Compiles, and makes the store.
            tree.figures.clear()
        for _ in range(args.repeats):
            for tree in trees:
                measure(tree, system)
        show(*trees)


if __name__ == "__main__":
    main()
