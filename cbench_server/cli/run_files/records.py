"""What runs were asked to do: in full in the user's own folder, without commands in the run itself.

A run's spec never names a command, since what a daemon keeps is read by others; so the text that
the run keeps leaves them out, and the whole of it is a file of this user beside the store.
"""

import argparse
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from cbench_server.cli.exits import UsageError
from cbench_server.cli.run_files.asked import document_asked
from cbench_server.cli.run_files.from_spec import document_of_spec
from cbench_server.cli.run_files.reading import Document
from cbench_server.cli.run_files.writing import to_toml
from cbench_server.durable.files import put_in_place
from cbench_server.spec import RUN_FILE_LABEL
from cbench_server.storage.leftovers import new_part

if TYPE_CHECKING:
    from cbench_server.spec import Run

_KEPT = 1000
_MAX_LABEL = 200_000
_COMMANDS = ("launch", "exec")


def text_for_run(args: argparse.Namespace) -> str:
    """Return what the run itself keeps of a run file: all but commands; empty where too long."""
    document, remarks = document_asked(args)
    systems = [_without_command(entry) for entry in document.get("systems", [])]
    hidden = [entry for entry in document.get("systems", []) if {*_COMMANDS} & {*entry}]
    if hidden:
        remarks.append(
            "Commands are kept on the machine that started the run, and left out here. Write them "
            "in the place of COMMAND."
        )
    text = to_toml({**document, "systems": systems}, remarks)
    return text if len(text) <= _MAX_LABEL else ""


def _without_command(entry: Document) -> Document:
    kept = {key: value for key, value in entry.items() if key != "folder"}
    return {**kept, **{way: "COMMAND" for way in _COMMANDS if way in entry}}


def keep(args: argparse.Namespace, run_id: str) -> None:
    """Write down what a run was asked to do, for `show --as-file` and `--repeat-last`."""
    document, remarks = document_asked(args)
    text = to_toml(document, [f"What run {run_id} was asked to do.", *remarks])
    # It is a convenience: a full disk must not end a run.
    with suppress(OSError):
        folder = _folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / f"{run_id}.toml"
        handle, part = new_part(folder, suffix=".part")
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
            put_in_place("asked", file, part, path, is_synced=False)
        for old in _newest_first(folder)[_KEPT:]:
            old.unlink(missing_ok=True)


def last_file(kind: str) -> Path:
    """Return the file of the newest run of a kind that was started here."""
    for path in _newest_first(_folder()):
        with suppress(OSError):
            if f'\nkind = "{kind}"\n' in path.read_text("utf-8"):
                return path
    raise UsageError(
        "--repeat-last: no run was started from here yet. Start one with systems and datasets, or "
        "with --config FILE."
    )


def as_file(run: "Run") -> str:
    """Return a run file that asks for what a run was asked to do."""
    own = _folder() / f"{run.run_id}.toml"
    with suppress(OSError):
        return own.read_text("utf-8")
    if text := run.spec.labels.get(RUN_FILE_LABEL, ""):
        return text
    document, remarks = document_of_spec(run.spec)
    return to_toml(document, [f"What run {run.run_id} was asked to do, from its spec.", *remarks])


def _newest_first(folder: Path) -> list[Path]:
    found = []
    with suppress(OSError):
        for path in folder.glob("*.toml"):
            with suppress(OSError):
                found.append((path.stat().st_mtime_ns, path))
    return [path for _, path in sorted(found, reverse=True)]


def _folder() -> Path:
    # Imported here, since most commands keep nothing.
    from cbench_server.daemon.settings import data_home, load_settings

    return data_home(load_settings({}).home) / "asked"
