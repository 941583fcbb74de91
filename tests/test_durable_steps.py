"""Every step that reaches the disk has a failpoint, so that kills can fall between any two."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cbench_server.durable import failpoints
from cbench_server.storage import postgresql_statements

ROOT = Path(__file__).resolve().parents[1]
SERVER = ROOT / "cbench_server"
FILES = "durable/files.py"

# Calls that put files in their place or make them last, of which durable/files.py knows.
_RENAMES = ("rename", "renames", "replace", "link", "symlink", "move", "fsync", "fdatasync")
# Elsewhere, each for a reason: what is put in place can be fetched or made again.
OTHERS = {
    "datasets/hub/download.py": "what is downloaded is checked against its digest",
    "models/local_fetch.py": "what is fetched is checked against its digest",
    "models/local_files.py": "digests are computed again",
    "reports/parquet_folder.py": "a folder is made anew, and refused where there is one",
    "storage/wal.py": "what is synced was written by another process",
}
# Functions that commit what others ask for, or that change nothing.
COMMITS_OF_OTHERS = {
    "connection.commit": "called by storage/writer.py and postgres/uploads.py",
    "database.commit": "called by storage/writer.py",
    "database.open": "settings of a connection",
}
_MODULES = ("os", "shutil")
_WRITES = re.compile(r"\s*(INSERT|UPDATE|DELETE)\b")


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def calls(node: ast.AST) -> Iterator[tuple[str, str, ast.Call]]:
    """Yield what is called on what: `os` and `replace` of `os.replace(a, b)`."""
    for each in ast.walk(node):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute):
            yield ast.unparse(each.func.value), each.func.attr, each


def places_files(path: Path) -> list[int]:
    """Return the lines that rename or sync something; texts, values and dates are replaced too."""
    return [
        call.lineno
        for owner, name, call in calls(ast.parse(path.read_text()))
        if name in _RENAMES
        and (owner in _MODULES or name == "rename" or (name == "replace" and _is_of_path(call)))
    ]


def _is_of_path(call: ast.Call) -> bool:
    """Tell `Path.replace(target)` from `str.replace(old, new)` and `datetime.replace(hour=0)`."""
    return len(call.args) == 1 and not call.keywords


def commits(node: ast.AST) -> bool:
    """Tell whether a function ends a transaction, or writes to PostgreSQL outside of one."""
    text = ast.unparse(node)
    return any(name == "commit" for _, name, _ in calls(node)) or '"COMMIT"' in text.replace(
        "'", '"'
    )


def writes_at_once(node: ast.AST) -> bool:
    """Tell whether a function has PostgreSQL change something, for which it needs no commit."""
    names = {
        each.attr
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute) and ast.unparse(each.value) == "sql"
    }
    statements = (str(getattr(postgresql_statements, name, "")) for name in names)
    return any(_WRITES.match(statement) for statement in statements)


def hits(node: ast.AST) -> bool:
    return any((owner, name) == ("failpoints", "hit") for owner, name, _ in calls(node))


def test_files_are_put_in_their_place_by_one_helper() -> None:
    found = {
        str(path.relative_to(SERVER)): lines
        for path in SERVER.rglob("*.py")
        if (lines := places_files(path))
    }
    assert found.keys() == {FILES, *OTHERS}, "write it beside, and use durable.files.put_in_place"


def test_every_commit_has_a_failpoint() -> None:
    without = {
        f"{path.stem}.{function.name}"
        for path in (SERVER / "storage").rglob("*.py")
        for function in functions(path)
        if commits(function) and not hits(function)
    }
    assert without == {*COMMITS_OF_OTHERS}


def test_every_write_to_a_shared_store_outside_a_transaction_has_a_failpoint() -> None:
    found = {
        f"{path.stem}.{function.name}": hits(function)
        for path in (SERVER / "storage" / "postgres").glob("*.py")
        for function in functions(path)
        if writes_at_once(function)
    }
    assert found.keys() >= {"leases.acquire", "leases.release", "leases.keep", "pulse._leave"}
    # That an upload is in use is only its time.
    assert [name for name, has_one in found.items() if not has_one] == ["uploads._use"]


def test_every_name_is_a_place_in_the_code_and_every_place_has_a_name() -> None:
    package = [path.read_text() for path in SERVER.rglob("*.py")]
    named = {name for text in package for name in re.findall(r'failpoints\.hit\("(.+?)"\)', text)}
    kinds = {kind for text in package for kind in re.findall(r'put_in_place\(\s*"(.+?)"', text)}
    assert kinds == {*failpoints.FILES}
    placed = {f"{kind}.{step}" for kind in kinds for step in ("written", "placed")}
    assert named | placed == {*failpoints.NAMES}


def test_a_failpoint_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="not a valid failpoint"):
        failpoints.armed("commit.middle")


def test_failpoints_are_off_unless_the_variable_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then a place is a call of an empty function, whatever its name."""
    monkeypatch.delenv(failpoints.VARIABLE, raising=False)
    before = failpoints.hit
    failpoints.arm()
    assert failpoints.hit is before
    assert before.__code__.co_code == (lambda name: None).__code__.co_code
