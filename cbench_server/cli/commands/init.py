"""`cbench init`: write a system to begin with, its test and its run file."""

import argparse
import shutil
from importlib import import_module
from pathlib import Path

from cbench_server.cli.exits import OK, UsageError
from cbench_server.cli.outcome import add_json, give, inform
from cbench_server.cli.starters.starter import Starter

LANGUAGES = ("python", "node", "go", "rust", "java", "shell")
_EXAMPLES = """\
examples:
  cbench init python
  cbench init shell --folder my-system
"""


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `cbench init`."""
    parser.epilog = _EXAMPLES
    parser.set_defaults(handler=init)
    parser.add_argument(
        "language", metavar="LANGUAGE", choices=LANGUAGES, help=", ".join(LANGUAGES)
    )
    parser.add_argument(
        "--folder", metavar="DIR", default=".", help="where to write it (default: this folder)"
    )
    add_json(parser)


def starter_of(language: str) -> Starter:
    """Return the starter of a language."""
    made: Starter = import_module(f"cbench_server.cli.starters.in_{language}").STARTER
    return made


def init(args: argparse.Namespace) -> int:
    """Write the files, and none over another; say what to type next."""
    starter, folder = starter_of(args.language), Path(args.folder)
    files = starter.written()
    there = [name for name in files if (folder / name).exists()]
    if there:
        raise UsageError(
            f"{folder / there[0]} is there already, and is not overwritten. Choose another folder "
            "with --folder."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            with (folder / name).open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise UsageError(f"cannot write {error.filename}: {error.strerror}.") from error
    inform(args, f"wrote {', '.join(files)}")
    for tool in starter.tools:
        if shutil.which(tool) is None:
            inform(args, f"it needs {tool}, which is not installed here")
    steps = [f"cd {folder}"] if args.folder != "." else []
    steps += [step for step in (starter.build, starter.test) if step]
    steps += ["cbench try --config run.toml", "cbench run --config run.toml"]
    found = {"folder": str(folder), "files": list(files), "next": steps}
    give(args, found, "\n".join(steps))
    return OK
