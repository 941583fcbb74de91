"""Where a launched program comes from: the commit of its folder, and whether files differ."""

import os
import shlex
import subprocess
from pathlib import Path

_PATIENCE_S = 10.0


def source_of(command: str, folder: Path) -> str:
    """Return the commit of a command's program, `-dirty` behind it; empty outside of git.

    A change of files that git does not track counts only where the program itself is one.
    """
    program = program_of(command, folder)
    place = program if program.is_dir() else program.parent
    commit = _git(place, "rev-parse", "--verify", "HEAD")
    if not commit:
        return ""
    changed = _git(place, "status", "--porcelain", "--untracked-files=no", "--", ":/")
    is_known = program.is_dir() or bool(_git(place, "ls-files", "--", program.name))
    # Where git cannot tell (None), nobody knows that it is this commit.
    return commit if is_known and changed == "" else f"{commit}-dirty"


def program_of(command: str, folder: Path) -> Path:
    """Return the file or folder that a command is about: a script before what runs it."""
    try:
        words = shlex.split(command)
    except ValueError:
        return folder
    named = [folder / word for word in words[1:] if not word.startswith("-")]
    for path in named:
        if path.exists():
            return path.absolute()
    if words and os.sep in words[0] and (folder / words[0]).exists():
        return (folder / words[0]).absolute()
    return folder.absolute()


def _git(folder: Path, *arguments: str) -> str | None:
    """Return what git says; None where it is missing, refuses or takes too long."""
    # A repository may name programs that git runs by itself to watch files.
    quiet = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
    try:
        done = subprocess.run(
            ["git", *quiet, "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
