"""`make demo` and `make demo-polyglot`: a daemon and three runs, without any model.

The first compares compressors in several languages with cuts to the same lengths, the second a
memory with the end of each conversation, the third scores the responses of a program on every
kind of dataset. Everything it starts is stopped in any case; the runs and a report on the first
stay in .demo.
"""

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from example_systems import (
    COMPILED,
    MEMORY,
    ROOT,
    WITHOUT_COMPILER,
    ExampleSystem,
    NotBuilt,
    build,
)

BIN = Path(sys.executable).parent
RETRIEVAL = "long-notes"
RATIO = 0.05
CONVERSATIONS = "mini-memory"
# About as many tokens as the eight turns that the memory by embeddings chooses.
LAST_TURNS = 5
RESPONDER = "rules_of_thumb.py"
TASKS = (
    "mini-qa",
    "mini-summaries",
    "mini-choice",
    "mini-code",
    "mini-maths",
    "mini-nli",
    "mini-instructions",
)
EXAMPLES_OF_A_TASK = 20
DRAIN_SECONDS = 30


def main(systems: Sequence[ExampleSystem], folder: Path) -> int:
    """Run the demonstration and return its exit code."""
    folder.mkdir(exist_ok=True)
    os.environ["CBENCH_HOME"] = str(folder / "home")
    with daemon(folder / "daemon.log") as address:
        say(f"a daemon listens on {address}; its log is in {folder / 'daemon.log'}")
        return show(systems, folder, ["--server", address])


def show(systems: Sequence[ExampleSystem], folder: Path, server: Sequence[str]) -> int:
    """Make the runs, print what they come to, and return the exit code."""
    built = list(buildable(systems, folder))
    names = ", ".join(system.name for system in built)
    say(f"first, {names} keep {RATIO:.0%} of each text, each beside cuts to its own length\n")
    if code := run_cbench([*compression(built), *server]):
        return code
    print_front(built, server)
    report = ["report", "last", "-o", str(folder / "report.html")]
    if code := run_cbench([*report, *server], subprocess.DEVNULL):
        return code
    for memory in buildable((MEMORY,), folder):
        say(f"\nthen {memory.name} remembers conversations, beside their last turns\n")
        print(flush=True)
        if code := run_cbench([*remembering(memory), *server]):
            return code
    say(f"\nlast, {RESPONDER} answers {len(TASKS)} kinds of questions\n")
    print(flush=True)
    code = run_cbench([*responding(), *server])
    if code == 0:
        say(WHAT_NEXT.format(folder=folder))
    return code


def buildable(systems: Sequence[ExampleSystem], folder: Path) -> Iterator[ExampleSystem]:
    """Build each system, and say which are skipped, and why."""
    for system in systems:
        try:
            build(system, folder / f"build-{system.name}.log", say)
        except NotBuilt as reason:
            what = system.name if system.language == "Python" else system.language
            say(f"{what} is skipped: {reason}")
        else:
            yield system


def compression(systems: Sequence[ExampleSystem]) -> list[str]:
    """Return the command of the first run: all but `identity` have the same budget."""
    command = ["run", "--dataset", RETRIEVAL]
    for system in systems:
        command += ["--launch", system.launch, "--name", system.name]
        command += ["--option", f"{system.name}.ratio={RATIO}"]
    return [*command, "--builtin", "identity", "--controls", "matched"]


def remembering(memory: ExampleSystem) -> list[str]:
    """Return the command of the second run: a memory, a cut of its length, and everything."""
    command = ["memory", "run", "--dataset", CONVERSATIONS]
    command += ["--launch", memory.launch, "--name", memory.name]
    command += ["--builtin", "last-n", "--option", f"last-n.n={LAST_TURNS}"]
    return [*command, "--builtin", "full-history"]


def responding() -> list[str]:
    """Return the command of the third run."""
    program = shlex.join([sys.executable, f"examples/python/{RESPONDER}"])
    command = ["run", "--launch", program, "-n", str(EXAMPLES_OF_A_TASK)]
    for name in TASKS:
        command += ["--dataset", name]
    return command


def print_front(systems: Sequence[ExampleSystem], server: Sequence[str]) -> None:
    """Print which systems no other beats on both score and context, by language."""
    compared = subprocess.run(
        [BIN / "cbench", "compare", "last", "--output", "json", *server],
        check=True,
        stdout=subprocess.PIPE,
    )
    fronts = json.loads(compared.stdout)["fronts"]
    (points,) = (front["points"] for front in fronts if front["axis"] == "context_tokens")
    language = {system.name: system.language for system in systems}
    print("\nQuality against context tokens; front 1 is the Pareto front", flush=True)
    print(f"{'Front':7}{'System':21}{'Language':12}{'Score':>5}{'Context tokens':>16}")
    for point in sorted(points, key=lambda each: (each["layer"], each["cost"]["value"])):
        name, score, cost = point["system"], point["quality"]["value"], point["cost"]["value"]
        if "@" in name:
            continue  # A cut to a system's length: the table above has them.
        spoken = language.get(name, "(control)")
        print(f"{point['layer']:<7}{name:21}{spoken:12}{score:5.3f}{cost:16,.0f}")


WHAT_NEXT = """
The compressors' report is {folder}/report.html: open it in a browser.
The runs are stored in {folder}/home. Look at them, or run one of your own:

  export CBENCH_HOME=$PWD/{folder}/home PATH=$PWD/.venv/bin:$PATH
  cbench runs
  cbench show last --rows 5
  cbench show last --example mini-code-001
  cbench run --launch "python examples/python/lexrank.py" --option ratio=0.1 --dataset long-notes
"""


@contextmanager
def daemon(log: Path) -> Iterator[str]:
    """Start a daemon on a free port, yield its address, and stop it."""
    with log.open("w") as stderr:
        # In a new session: Ctrl-C is for the run, and we stop the daemon after it.
        process = subprocess.Popen(
            [BIN / "cbench-server", "--address", "127.0.0.1:0", "--log-format", "text"],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            start_new_session=True,
        )
    try:
        assert process.stdout is not None
        # The line comes when the daemon listens; an end without it means it could not.
        handshake = process.stdout.readline().strip()
        if not handshake:
            sys.exit(f"the daemon did not start:\n{log.read_text()}")
        yield handshake.split("|")[3]
    finally:
        process.terminate()
        try:
            process.wait(DRAIN_SECONDS)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            process.kill()
            process.wait()


def run_cbench(arguments: list[str], stdout: int | None = None) -> int:
    """Run `cbench` and return its exit code; on Ctrl-C, wait until it has ended."""
    with subprocess.Popen([BIN / "cbench", *arguments], stdout=stdout) as process:
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:
                continue  # Ctrl-C has reached cbench too, which cancels the run and ends.
            except SystemExit:
                process.terminate()
                process.wait()
                raise


def say(text: str) -> None:
    """Print to stderr; stdout is for the tables."""
    print(text, file=sys.stderr, flush=True)


def _end(number: int, _: object) -> None:
    sys.exit(128 + number)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--polyglot", action="store_true", help="build Go and Rust, too")
    parser.add_argument(
        "--folder", type=Path, default=Path(".demo"), help="where the runs and the report are kept"
    )
    return parser.parse_args()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _end)
    try:
        os.chdir(ROOT)
        given = _arguments()
        compiled = COMPILED if given.polyglot else ()
        sys.exit(main((*WITHOUT_COMPILER, *compiled), given.folder))
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
