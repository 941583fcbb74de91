"""Parts that benchmarks share: a daemon, an echo system, and what a process uses."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

ECHO = Path(__file__).with_name("echo_system.py")
_TICKS = os.sysconf("SC_CLK_TCK")
T = TypeVar("T")


class Program:
    """A child that announces its address by the handshake line."""

    def __init__(self, *command: str, env: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "CBENCH_HANDSHAKE": "1", **(env or {})},
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line.startswith("cbench|1|"):
            raise SystemExit(f"{command} did not start: {line!r}")
        self.address = line.strip().rpartition("|")[2]

    @property
    def cpu_seconds(self) -> float:
        """User and system time so far, of the process alone."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def memory_mb(self, what: str = "VmRSS") -> float:
        """Resident memory now, or at its peak (`VmHWM`)."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(what):
                return int(line.split()[1]) / 1024
        raise ValueError(what)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def start_daemon(
    home: str, port: int = 0, flags: Sequence[str] = (), env: dict[str, str] | None = None
) -> Program:
    """Start `cbench-server`."""
    program = "import sys; from cbench_server.daemon import main; sys.exit(main())"
    address = f"127.0.0.1:{port}"
    command = (sys.executable, "-c", program, "--home", home, "--address", address, *flags)
    return Program(*command, env=env)


def start_echo(mode: str, delay: float = 0.0, port: int = 0, log: str = "") -> Program:
    """Start the echo system: `stream` or `unary`."""
    return Program(sys.executable, str(ECHO), mode, str(delay), str(port), log)


@contextmanager
def programs(*started: Program) -> Iterator[tuple[Program, ...]]:
    """End programs when the context ends."""
    try:
        yield started
    finally:
        for program in started:
            program.kill()


@contextmanager
def scratch() -> Iterator[str]:
    """A home for one benchmark."""
    with tempfile.TemporaryDirectory(prefix="cbench-bench-") as folder:
        yield folder


def make_examples(count: int, context_bytes: int) -> Iterator[dict[str, Any]]:
    """Make examples whose contexts differ, so that no cache can help."""
    words = [
        "river",
        "stone",
        "garden",
        "letter",
        "market",
        "winter",
        "bridge",
        "candle",
        "window",
        "forest",
    ]
    for number in range(count):
        context = []
        size = 0
        step = number
        while size < context_bytes:
            step = (step * 1103515245 + 12345) % 2**31
            word = words[step % len(words)] if step % 7 else str(step)
            context.append(word)
            size += len(word) + 1
        yield {
            "id": number,
            "context": " ".join(context)[:context_bytes],
            "question": f"What stands beside the {words[number % 10]}?",
            "answer": words[(number + 3) % 10],
        }


def table(header: list[str], rows: list[list[str]]) -> str:
    """Render a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


TRIES = 5
# Baselines before and after are the same thing if they differ by no more.
STEADY = 0.05


def between(bare: Callable[[], float], measure: Callable[[], T]) -> tuple[T, float, float]:
    """Measure between two baselines, and again where these differ: the machine has moved.

    Returns what was measured last, the mean of its two baselines, and by which share they differ.
    """
    for _ in range(TRIES):
        before, measured, after = bare(), measure(), bare()
        moved = abs(after - before) / min(before, after)
        if moved <= STEADY:
            break
    return measured, (before + after) / 2, moved


def verdict(*, holds: bool, moved: float) -> str:
    """Say whether an aim holds, and where that cannot be told since the baselines differ."""
    word = "yes" if holds else "NO"
    return word if moved <= STEADY else f"{word}, but the machine moved by {moved:.0%}"
