"""docs/architecture.md names files that exist, and every room and word there is."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SERVER = ROOT / "cbench_server"
PAGE = (ROOT / "docs" / "architecture.md").read_text()
_ADDED = PAGE.partition("## To add something")[2]

# What a stranger asks first, and the file that the page must name for it.
ANSWERS = {
    "the retry rule": "runs/retry.py",
    "where a row becomes bytes for the store": "storage/codec.py",
    "where a watcher is woken": "storage/wakeups.py",
    "where a new command goes": "cbench_server/cli/commands/",
    "where a dataset's mapping goes": "cbench_server/datasets/catalog/",
    "what closes a remote evaluator's channel": "runs/connections.py",
}


def named_paths(text: str) -> set[str]:
    """Every path in backquotes or links, as the page writes it."""
    quoted = re.findall(r"`([\w./{},-]+(?:/|\.\w+))`", text)
    return {path for path in quoted if "/" in path or path.endswith(".py")}


def exists(path: str) -> bool:
    bases = (ROOT, SERVER, ROOT / "clients" / "python")
    return any((base / path).exists() for base in bases)


@pytest.mark.parametrize("path", sorted(named_paths(PAGE) - {"launched/", "locks/", "uploads/"}))
def test_what_the_page_names_is_there(path: str) -> None:
    inside = [path, *(f"{room}/{path}" for room in ("datasets", "metrics", "cli"))]
    assert any(exists(each) for each in inside)


def test_the_page_names_every_room_and_every_word() -> None:
    rooms = {path.name for path in SERVER.iterdir() if path.is_dir()} - {"__pycache__"}
    words = {path.name for path in SERVER.glob("*.py")} - {"__init__.py", "version.py"}
    missing = [room for room in rooms if f"`{room}/`" not in PAGE]
    missing += [word for word in words if f"`{word}`" not in PAGE]
    assert not missing


def test_what_is_to_be_touched_is_named_by_its_path_from_the_root() -> None:
    paths = named_paths(_ADDED)
    assert len(paths) > 20
    assert all((ROOT / path).exists() for path in paths), paths


@pytest.mark.parametrize("question", ANSWERS)
def test_a_stranger_finds_the_file(question: str) -> None:
    assert f"`{ANSWERS[question]}`" in PAGE
