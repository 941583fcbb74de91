"""What a starter is, and the run file that all of them share."""

from collections.abc import Mapping
from dataclasses import dataclass

_RUN = """\
# Run it with `cbench run --config run.toml`; see one example with `cbench try --config run.toml`.
kind = "process"

[[systems]]
name = "mine"
{way} = {command}

[[systems]]
builtin = "truncate-tail"

[[datasets]]
name = "long-notes"

[run]
controls = "matched"

# [gate]
# system = "mine"
# policies = ["score at least 0.5", "failures at most 0"]
"""


@dataclass(frozen=True)
class Starter:
    """A program that keeps the sentences which share a word with the question."""

    files: Mapping[str, str]
    command: str
    test: str
    """How its test is run."""
    build: str = ""
    """What to do before it runs; empty where nothing is."""
    way: str = "exec"
    tools: tuple[str, ...] = ()

    def written(self) -> dict[str, str]:
        """Return every file by its name, the run file included."""
        quoted = '"' + self.command.replace("\\", "\\\\").replace('"', '\\"') + '"'
        return {**self.files, "run.toml": _RUN.format(way=self.way, command=quoted)}
