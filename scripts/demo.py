"""What `make demo` does: a daemon and two runs, with every evaluator that needs no model.

The first compares compressors with controls, the second scores the responses of a program on
every kind of dataset. Everything it starts is stopped again, whatever happens; what it leaves
are the runs, in .demo/home, and a report on the first.
"""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
DEMO = ROOT / ".demo"
COMPRESSORS = ("extractive.py", "keyword_windows.py")
CONTROLS = ("identity", "truncate-tail", "random-drop")
RETRIEVAL = ("long-notes", "mini-qa")
RESPONDERS = ("rules_of_thumb.py",)
TASKS = (
    *("mini-qa", "mini-summaries", "mini-choice", "mini-code"),
    *("mini-maths", "mini-nli", "mini-instructions"),
)
EXAMPLES_OF_A_TASK = 20
DRAIN_SECONDS = 30
REPORT = ".demo/report.html"


def main() -> int:
    """Run the demonstration and return its exit code."""
    DEMO.mkdir(exist_ok=True)
    os.environ["CBENCH_HOME"] = str(DEMO / "home")
    with daemon() as address:
        say(f"a daemon listens on {address}; its log is in .demo/daemon.log")
        say(f"first, {' and '.join(COMPRESSORS)} shorten texts, beside {len(CONTROLS)} controls\n")
        code = run_cbench(run_command(address, COMPRESSORS, CONTROLS, RETRIEVAL))
        if code == 0:
            report = ["report", "last", "--server", address, "-o", REPORT]
            code = run_cbench(report, stdout=subprocess.DEVNULL)
        if code == 0:
            say(f"\nthen {' and '.join(RESPONDERS)} answers {len(TASKS)} kinds of questions\n")
            print(flush=True)
            command = run_command(address, RESPONDERS, (), TASKS)
            code = run_cbench([*command, "-n", str(EXAMPLES_OF_A_TASK)])
    if code == 0:
        say(WHAT_NEXT)
    return code


def run_command(
    address: str, programs: Sequence[str], builtins: Sequence[str], datasets: Sequence[str]
) -> list[str]:
    """Return the command a person would type."""
    command = ["run", "--server", address]
    for program in programs:
        command += ["--launch", f"{shlex.quote(sys.executable)} examples/python/{program}"]
    for name in builtins:
        command += ["--builtin", name]
    for name in datasets:
        command += ["--dataset", name]
    return command


WHAT_NEXT = f"""
The compressors' report is {REPORT}: open it in a browser.
The runs are stored in .demo/home. Look at them, or run one of your own:

  export CBENCH_HOME=$PWD/.demo/home PATH=$PWD/.venv/bin:$PATH
  cbench runs
  cbench show last --rows 5
  cbench show last --example mini-code-001
  cbench run --launch "python examples/python/extractive.py" --option ratio=0.1 --dataset long-notes
"""


@contextmanager
def daemon() -> Iterator[str]:
    """Start a daemon on a free port, yield its address, and stop it."""
    log = DEMO / "daemon.log"
    with log.open("w") as stderr:
        # A session of its own: Ctrl-C is for the run, and we stop the daemon after it.
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
    """Run `cbench` and return its exit code, leaving it the time to end well."""
    with subprocess.Popen([BIN / "cbench", *arguments], cwd=ROOT, stdout=stdout) as process:
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
    """Tell a person; stdout is for the table alone."""
    print(text, file=sys.stderr, flush=True)


def _end(number: int, _: object) -> None:
    sys.exit(128 + number)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _end)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
