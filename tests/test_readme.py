"""The README's commands run, and print what it shows, but for numbers and names of runs.

CBENCH_GOLDEN=1 writes what they print into the page.
"""

import difflib
import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.fixtures import preloaded
from tests.fixtures.sdks import LONG_SECONDS

ROOT = Path(__file__).resolve().parent.parent
HOWTO = ("compare", "gate", "debug", "rows")
PAGES = ("README.md", "docs/quickstart.md", *(f"docs/howto/{name}.md" for name in HOWTO))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


class Command(NamedTuple):
    """A command line and what the page shows below it."""

    line: str
    shown: str


def blocks(page: str, language: str) -> list[str]:
    return [body for kind, body in BLOCK.findall((ROOT / page).read_text()) if kind == language]


def commands(block: str) -> list[Command]:
    """Split a console block at its `$ ` lines."""
    parts = re.split(r"^\$ ", block, flags=re.M)
    assert parts[0] == "", "a console block begins with a command"
    return [Command(*part.partition("\n")[::2]) for part in parts[1:]]


BY_LATENCY = "Quality against latency"


def shape(output: str) -> list[str]:
    """Reduce output to what must not change: numbers, times and widths may."""
    text = re.sub(r"\d{8}-\d{6}-\w+", "RUN", output)
    text = re.sub(r"\d[\d,.]*( ?(?:us|ms|s|min|h)\b)?", lambda m: "TIME" if m[1] else "N", text)
    # On a busy machine 4.9 s become 1 min 05 s.
    text = text.replace("TIME TIME", "TIME")
    text = re.sub(r"-{3,}", "---", text)
    # Which of two quick systems is the quicker one is the machine's to say, and so is their order.
    text = re.sub(r"[+-](N%)$", r"\1", text, flags=re.M)
    lines = [" ".join(line.split()) for line in text.strip().splitlines()]
    if BY_LATENCY in lines:
        start = lines.index(BY_LATENCY)
        end = lines.index("", start) if "" in lines[start:] else len(lines)
        lines[start:end] = sorted(lines[start:end])
    return lines


def shown_here(output: str) -> str:
    """Leave out the line of the demo's system in JavaScript where it cannot take part."""
    if shutil.which("npm") is not None:
        return output
    return re.sub(r"^.*\bkeyword-in-context\b.*\n", "", output, flags=re.M)


def run(line: str, folder: Path) -> str:
    bin_folder = Path(sys.executable).parent
    environment = {
        # Also without MAKEFLAGS and its like: under `make test`, make would announce its folder.
        **{
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("CBENCH_", "MAKE"))
        },
        "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
        "CBENCH_HOME": str(folder / "home"),
        "COLUMNS": "200",
    }
    where = ROOT if line.startswith("make ") else folder
    program, *arguments = shlex.split(line)
    # A line without anything for a shell is what the shell would start.
    is_plain = program == "cbench" and not set(line) & set("|&;<>$*~#`")
    command = [str(preloaded.CBENCH), *arguments] if is_plain else ["sh", "-c", line]
    done = preloaded.run(command, cwd=where, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"$ {line}\n{done.stdout}{done.stderr}"
    return done.stdout


# The README's `make demo` makes three runs, and on a fresh clone an environment.
@pytest.mark.slow
@pytest.mark.timeout(LONG_SECONDS)
@pytest.mark.parametrize("page", PAGES)
def test_commands_print_what_the_page_shows(page: str, tmp_path: Path) -> None:
    for source in blocks(page, "python"):
        if name := re.match(r"# (\w+\.py)\n", source):
            (tmp_path / name[1]).write_text(source)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    shown = [each for block in blocks(page, "console") for each in commands(block)]
    assert shown, f"{page} shows no commands"
    for command in shown:
        output = run(command.line, tmp_path)
        if os.environ.get("CBENCH_GOLDEN") == "1":
            head = f"$ {command.line}\n"
            text = (ROOT / page).read_text().replace(head + command.shown, head + output, 1)
            (ROOT / page).write_text(text)
            continue
        expected, printed = shape(shown_here(command.shown)), shape(output)
        difference = "\n".join(difflib.unified_diff(expected, printed, page, "printed", n=0))
        assert expected == printed, f"$ {command.line}\n{difference}"


def test_numbers_do_not_count_but_words_do() -> None:
    assert shape("a  1.5 ms ok") == shape("a 23 ms  ok")
    assert shape("in 4.9 s, 3 rows") == shape("in 1 min 05 s, 3 rows")
    assert shape("a 1.5 ms ok") != shape("a 1.5 ms failed")
