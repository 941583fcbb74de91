"""Commands that change files and stores: what each is given, and what must hold when it is done.

Each is killed at any place in it, in a copy of the same folder, and then given once more.
"""

import asyncio
import json
import os
import shlex
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cbench_server.durable import failpoints
from cbench_server.runs.row_cache import RowCache
from cbench_server.runs.store import RowQuery
from cbench_server.storage.judge_checks import JudgeCheckStore
from cbench_server.storage.sqlite import SqliteStore
from cbench_server.storage.uploads import UploadStore
from tests.fixtures import preloaded

SYSTEM = Path(__file__).parents[1] / "cli" / "programs" / "system.py"
_IS_OVER = "nothing left to resume"
# For any of them, which takes a second.
_PATIENCE_S = 100
OLD, DAYS_AGO = "from before\n", 2 * 86_400
_made = ExitStack()


def clean_environment(folder: Path) -> dict[str, str]:
    """Return ours without anybody's settings."""
    inherited = {name: text for name, text in os.environ.items() if name[:7] != "CBENCH_"}
    return {**inherited, "CBENCH_HOME": str(folder / "home")}


def do(folder: Path, *command: object, **environment: str) -> Any:
    """Do a command of ours, or a Python program, in a folder with a home."""
    return preloaded.run(
        [str(part) for part in command],
        env={**clean_environment(folder), **environment},
        cwd=folder,
        timeout=_PATIENCE_S,
        capture_output=True,
        text=True,
    )


def done(folder: Path, *arguments: object, home: str = "home") -> str:
    """Do `cbench` and return what it says; it must succeed."""
    return succeeded(do(folder, preloaded.CBENCH, *arguments, CBENCH_HOME=str(folder / home)))


def succeeded(result: Any) -> str:
    assert result.returncode == 0, result.stderr
    return str(result.stdout)


@cache
def two_runs() -> Path:
    """Return a folder, to be copied, with a home of two runs and with leftovers of the dead."""
    folder = Path(_made.enter_context(TemporaryDirectory(prefix="cbench-commands-")))
    for _ in range(2):
        done(folder, "run", "--builtin", "truncate-tail", "--dataset", "mini-qa", "-n", 3)
    for number in range(2):
        with UploadStore(folder / "home").writer() as upload:
            upload.add({"id": number})
            upload.finish()
    uploads = folder / "home" / "uploads"
    for path in uploads.iterdir():
        os.utime(path, (time.time() - DAYS_AGO,) * 2)
        path.with_suffix(".part").write_bytes(b"half of one")
    for name, texts in contents(folder).items():
        (folder / name).write_text(texts)
    (folder / "out.run").write_text(OLD)
    done(folder, "tokens", "create", "first", "--role", "read", "--token-file", "tokens")
    done(folder, "export", first(folder), "--format", "run", "-o", "first.run")
    return folder


def contents(folder: Path, home: str = "home") -> dict[str, str]:
    """Return the rows of every run that a home lists; none may be unreadable."""

    async def read() -> dict[str, str]:
        store = SqliteStore.open(folder / home)
        try:
            query = RowQuery(processed=True, original=True)
            listed = [run.run_id for run in await store.list_runs()]
            return {each: repr(await store.read_rows(each, query)) for each in listed}
        finally:
            await store.close()

    return asyncio.run(read())


def first(folder: Path) -> str:
    return min(path.name for path in folder.iterdir() if path.name.startswith("20"))


def rows_then(folder: Path) -> dict[str, str]:
    """Return the rows that the runs had before anything was done."""
    return {path.name: path.read_text() for path in folder.glob("20*")}


@dataclass(frozen=True)
class Command:
    """What is done, what holds whenever it was killed, and what once it has been done again."""

    arguments: Callable[[Path], list[object]]
    always: Callable[[Path], None]
    at_end: Callable[[Path], None]
    home: str = "home"
    nothing_left: str = ""
    """What it says, as of an error, when it had been done before it was killed."""

    def folder(self, place: Path) -> Path:
        """Return what it is done in, a copy of its own."""
        return shutil.copytree(two_runs(), place)

    def kill(self, folder: Path, setting: str) -> Any:
        """Do it until it is killed at a failpoint, if it comes there."""
        environment = {failpoints.VARIABLE: setting, "CBENCH_HOME": str(folder / self.home)}
        return do(folder, *self.arguments(folder), **environment)

    def check(self, folder: Path) -> None:
        """Find what it left whole, do it again, and find it done."""
        self.always(folder)
        again = do(folder, *self.arguments(folder), CBENCH_HOME=str(folder / self.home))
        if not (self.nothing_left and self.nothing_left in again.stderr):
            succeeded(again)
        self.at_end(folder)


def all_runs_are_there(folder: Path) -> None:
    assert contents(folder) == rows_then(folder)


def what_is_left_is_whole(folder: Path) -> None:
    found, then = contents(folder), rows_then(folder)
    assert found.items() <= then.items()
    assert max(then) in found


def names_of_tokens(folder: Path) -> list[str]:
    listed = json.loads(done(folder, "tokens", "list", "--token-file", "tokens", "--json"))
    return [each["name"] for each in listed]


def the_first_token_stands(folder: Path) -> None:
    assert names_of_tokens(folder)[0] == "first"
    assert (folder / "tokens").stat().st_mode & 0o777 == 0o600


def a_token_is_added(folder: Path) -> None:
    assert set(names_of_tokens(folder)) == {"first", "second"}
    assert not [path for path in folder.glob(".tokens*") if path.suffix != ".lock"]


def the_old_file_or_all_of_the_new(folder: Path) -> None:
    text = (folder / "out.run").read_bytes()
    assert text in (OLD.encode(), (folder / "first.run").read_bytes())


def the_new_file(folder: Path) -> None:
    assert (folder / "out.run").read_bytes() == (folder / "first.run").read_bytes()


def it_is_pinned(folder: Path) -> None:
    store = sqlite3.connect(folder / "home" / "cbench.db")
    pinned = store.execute("SELECT run_id FROM runs WHERE pinned").fetchall()
    store.close()
    assert pinned == [(first(folder),)]
    all_runs_are_there(folder)


def only_the_last_run(folder: Path) -> None:
    then = rows_then(folder)
    assert contents(folder) == {max(then): then[max(then)]}
    is_deleted(folder, first(folder))


def is_deleted(folder: Path, run_id: str) -> None:
    done(folder, "runs", "prune", "--keep", 2)
    stored = (folder / "home" / "cbench.db").read_bytes()
    assert run_id.encode() not in stored


def all_is_tidy(folder: Path) -> None:
    only_the_last_run(folder)
    assert not [*(folder / "home" / "uploads").iterdir()]


def it_is_archived(folder: Path) -> None:
    only_the_last_run(folder)
    path = folder / "archive" / f"{first(folder)}.run.gz"
    assert {each.name for each in path.parent.iterdir()} == {path.name, f"{first(folder)}.json"}
    done(folder, "import", path, home="restored")
    assert contents(folder, "restored") == {first(folder): rows_then(folder)[first(folder)]}


def it_is_imported(folder: Path) -> None:
    assert contents(folder, "other") == {first(folder): rows_then(folder)[first(folder)]}


def all_is_copied(folder: Path) -> None:
    assert contents(folder, "other") == rows_then(folder)
    sent = [UploadStore(folder / home).all() for home in ("home", "other")]
    assert sent[0] == sent[1] != []


def part_of_the_copy(folder: Path) -> None:
    all_runs_are_there(folder)
    if (folder / "other" / "cbench.db").exists():
        assert contents(folder, "other").items() <= rows_then(folder).items()


def the_check_or_none(folder: Path) -> None:
    assert JudgeCheckStore(folder / "home").get("a key") in (None, {"said": "x" * 5000})


def the_check(folder: Path) -> None:
    assert JudgeCheckStore(folder / "home").get("a key") == {"said": "x" * 5000}


def the_row_or_none(folder: Path) -> None:
    kept = RowCache(folder / "cache").get("a key")
    assert kept is None or kept.row.scores == {"f1": 0.5}


def the_row(folder: Path) -> None:
    kept = RowCache(folder / "cache").get("a key")
    assert kept is not None
    the_row_or_none(folder)


def records_are_whole(folder: Path) -> None:
    for record in (folder / "home" / "launched").glob("*.json"):
        assert json.loads(record.read_bytes())[0]["label"]


def the_last_run_is_whole(folder: Path) -> None:
    told = json.loads(done(folder, "show", "last", "--json"))
    assert (told["state"], told["completed_rows"], told["failed_rows"]) == ("succeeded", 3, 0)
    records_are_whole(folder)
    assert contents(folder).items() >= rows_then(folder).items()


def what_was_asked_is_known(folder: Path) -> None:
    """What was begun can go on, and tells what it was asked to do."""
    resumed = do(folder, preloaded.CBENCH, "resume", "last", "--quiet")
    assert resumed.returncode == 0 or _IS_OVER in resumed.stderr
    assert "truncate-tail" in done(folder, "show", "last", "--as-file")


def program(text: str) -> list[object]:
    """Return a program that is killed where a command would be."""
    armed = f"from cbench_server.durable import failpoints; failpoints.arm(); {text}"
    return [sys.executable, "-c", armed]


def cbench(*arguments: object) -> Callable[[Path], list[object]]:
    return lambda folder: [preloaded.CBENCH, *arguments]


def of_first(*before: object, then: tuple[object, ...] = ()) -> Callable[[Path], list[object]]:
    return lambda folder: [preloaded.CBENCH, *before, first(folder), *then]


_KEEP_CHECK = (
    "from pathlib import Path; from cbench_server.storage.judge_checks import JudgeCheckStore; "
    "JudgeCheckStore(Path('home')).put('a key', {'said': 'x' * 5000})"
)
_KEEP_ROW = (
    "from cbench_server.results import EvalRow; "
    "from cbench_server.runs.row_cache import KeptAnswer, RowCache; "
    "RowCache('cache').put('a key', KeptAnswer(EvalRow('a', 1, {'f1': 0.5}, 7, 3)))"
)
_ANSWERING = shlex.join([sys.executable, str(SYSTEM), "answering"])
_CREATE = ("tokens", "create", "second", "--another", "--role", "read", "--token-file", "tokens")

COMMANDS = {
    "tokens": Command(cbench(*_CREATE), the_first_token_stands, a_token_is_added),
    "export": Command(
        of_first("export", then=("--format", "run", "-o", "out.run")),
        the_old_file_or_all_of_the_new,
        the_new_file,
    ),
    "salvage": Command(
        of_first("runs", "salvage", then=("-o", "out.run")),
        the_old_file_or_all_of_the_new,
        the_new_file,
    ),
    "pin": Command(of_first("runs", "pin"), all_runs_are_there, it_is_pinned),
    "delete": Command(
        of_first("runs", "delete"), what_is_left_is_whole, only_the_last_run, nothing_left="no run"
    ),
    "prune": Command(cbench("runs", "prune", "--keep", 1), what_is_left_is_whole, all_is_tidy),
    "archive": Command(
        of_first("runs", "archive", then=("--to", "archive")),
        what_is_left_is_whole,
        it_is_archived,
    ),
    "import": Command(
        cbench("import", "first.run"), all_runs_are_there, it_is_imported, home="other"
    ),
    "copy": Command(cbench("store", "copy", "home", "other"), part_of_the_copy, all_is_copied),
    "launch": Command(
        cbench("run", "--launch", _ANSWERING, "--dataset", "mini-qa", "-n", 3, "--quiet"),
        records_are_whole,
        the_last_run_is_whole,
    ),
    "run": Command(
        cbench("run", "--builtin", "truncate-tail", "--dataset", "mini-qa", "-n", 3, "--quiet"),
        what_was_asked_is_known,
        the_last_run_is_whole,
    ),
    "judge check": Command(lambda _: program(_KEEP_CHECK), the_check_or_none, the_check),
    "cached row": Command(lambda _: program(_KEEP_ROW), the_row_or_none, the_row),
}
# A run comes to places in no order, and is killed at each of them by test_failpoints.
IN_ORDER = COMMANDS.keys() - {"launch", "run"}
