"""What `make demo` does: a daemon, two systems of our own, three controls, one table.

Everything it starts is stopped again, whatever happens; what it leaves is the
run, in .demo/home.
"""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
DEMO = ROOT / ".demo"
SYSTEMS = ("extractive.py", "keyword_windows.py")
CONTROLS = ("identity", "truncate-tail", "random-drop")
DATASETS = ("long-notes", "mini-qa")
DRAIN_SECONDS = 30


def main() -> int:
    """Run the demonstration and return its exit code."""
    DEMO.mkdir(exist_ok=True)
    os.environ["CBENCH_HOME"] = str(DEMO / "home")
    with daemon() as address:
        say(f"a daemon listens on {address}; its log is in .demo/daemon.log")
        say(f"starting {' and '.join(SYSTEMS)}, each in a process of its own\n")
        code = run_cbench(run_command(address))
    if code == 0:
        say(WHAT_NEXT)
    return code


def run_command(address: str) -> list[str]:
    """Return the command a person would type."""
    command = ["run", "--server", address]
    for program in SYSTEMS:
        command += ["--launch", f"{shlex.quote(sys.executable)} examples/python/{program}"]
    for name in CONTROLS:
        command += ["--builtin", name]
    for name in DATASETS:
        command += ["--dataset", name]
    return command


WHAT_NEXT = """
The run is stored in .demo/home. Look at it, or run one of your own:

  export CBENCH_HOME=$PWD/.demo/home PATH=$PWD/.venv/bin:$PATH
  cbench runs
  cbench show last --rows 5
  cbench show last --example long-notes-001 --system extractive
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


def run_cbench(arguments: list[str]) -> int:
    """Run `cbench` and return its exit code, leaving it the time to end well."""
    with subprocess.Popen([BIN / "cbench", *arguments], cwd=ROOT) as process:
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
