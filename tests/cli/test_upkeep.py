"""Upkeep of stored runs as a person does it: export, import, deep check, salvage, prune, pin."""

import json
import shutil
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from cbench_server.storage.database import connect
from cbench_server.storage.transaction import Transaction
from tests.cli.conftest import Cbench, complaint, strict
from tests.e2e.processes import DaemonProcess


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a home with two runs is kept for the tests of this module."""
    return tmp_path_factory.mktemp("upkeep") / "home"


@pytest.fixture
def home(tmp_path: Path, filled: Path) -> Path:
    if filled.exists():
        shutil.copytree(filled, tmp_path / "home")
    return tmp_path / "home"


@pytest.fixture
def runs(cbench: Cbench, home: Path, filled: Path) -> list[str]:
    """The ids of two finished runs, oldest first."""
    if not filled.exists():
        for name in ("identity", "truncate-tail"):
            made = cbench("run", "--builtin", name, "--dataset", "mini-qa", "-n", "3")
            assert made.returncode == 0, made.stderr
        shutil.copytree(home, filled)
    connection = sqlite3.connect(home / "cbench.db")
    found = [run_id for (run_id,) in connection.execute("SELECT run_id FROM runs ORDER BY id")]
    connection.close()
    return found


def change(home: Path, statement: str) -> None:
    connection = sqlite3.connect(home / "cbench.db")
    assert connection.execute(statement).rowcount > 0
    connection.commit()
    connection.close()


@pytest.mark.parametrize("name", ["moved.run", "moved.run.gz"])
def test_a_run_moves_to_another_store(
    cbench: Cbench, runs: list[str], tmp_path: Path, name: str
) -> None:
    there = partial(cbench, CBENCH_HOME=str(tmp_path / "other"))
    written = cbench("export", runs[0][:-1], "-o", name)
    assert written.returncode == 0, written.stderr
    imported = there("import", name)
    assert (imported.returncode, imported.stdout) == (0, f"{runs[0]}\n")
    again = there("import", name)
    assert (again.returncode, again.stdout) == (0, f"{runs[0]}\n")
    assert "is stored already" in again.stderr
    shown = [each("export", "last", "--format", "json") for each in (there,)]
    here = cbench("export", runs[0], "--format", "json")
    assert strict(shown[0].stdout) == strict(here.stdout)
    copy = there("import", name, "--new-id").stdout.strip()
    assert copy != runs[0]
    assert {run["run_id"] for run in strict(there("runs", "--output", "json").stdout)} == {
        runs[0],
        copy,
    }


def test_a_file_that_is_damaged_newer_or_none_is_refused(
    cbench: Cbench, runs: list[str], tmp_path: Path
) -> None:
    cbench("export", runs[0], "--format", "run", "-o", "x")
    whole = (tmp_path / "x").read_bytes()
    for content, message in (
        (whole[:-30], "x is damaged (it ends early)"),
        (whole[:900] + b"?" + whole[901:], "x is damaged (frame"),
        (b"cbench-run-0009\n", "x was written by a newer cbench-server"),
        (b"{}", "x is not a run. Write one with: cbench export"),
    ):
        (tmp_path / "x").write_bytes(content)
        refused = cbench("import", "x", CBENCH_HOME=str(tmp_path / "other"))
        assert refused.returncode == 2
        assert complaint(refused).startswith(message)
    assert (
        strict(cbench("runs", "--output", "json", CBENCH_HOME=str(tmp_path / "other")).stdout) == []
    )


def test_what_works_on_files_says_so_where_a_daemon_is_named(cbench: Cbench) -> None:
    refused = cbench("runs", "salvage", "last", CBENCH_SERVER="host:1")
    assert refused.returncode == 2
    assert "not through the daemon at host:1" in complaint(refused)


def damage(home: Path) -> None:
    change(home, "UPDATE events SET head = zeroblob(5) WHERE run = 1 AND seq = 4")
    change(home, "UPDATE runs SET last_seq = last_seq + 256 WHERE id = 1")


def test_a_damaged_run_is_named_in_the_list_and_others_are_read(
    cbench: Cbench, runs: list[str], home: Path
) -> None:
    damage(home)
    listed = cbench("runs")
    assert listed.returncode == 0
    assert [line.split()[0] for line in listed.stdout.splitlines()[2:]] == runs[::-1]
    # When it was started is damaged with the rest of its row.
    assert listed.stdout.splitlines()[3].split()[1:3] == ["—", "damaged"]
    assert f'the record of run "{runs[0]}" is damaged' in listed.stderr
    assert len(cbench("export", runs[1], "--format", "csv").stdout.splitlines()) == 4
    refused = cbench("show", runs[0])
    assert refused.returncode == 1
    assert f"cbench runs salvage {runs[0]}" in complaint(refused)


def test_the_doctor_finds_damage_and_says_what_can_be_saved(
    cbench: Cbench, runs: list[str], home: Path
) -> None:
    damage(home)
    quick = cbench("doctor")
    assert quick.returncode == 1
    assert "cbench doctor --deep" in quick.stdout
    deep = cbench("doctor", "--deep", "--output", "json")
    assert deep.returncode == 1
    [found] = [each for each in json.loads(deep.stdout) if each["status"] == "fail"]
    assert found["subject"] == f"run {runs[0]}"
    assert "event 4" in found["message"]
    assert "Save them: cbench runs salvage" in found["fix"]


def test_a_damaged_run_is_saved_and_made_whole_elsewhere(
    cbench: Cbench, runs: list[str], home: Path, tmp_path: Path
) -> None:
    damage(home)
    saved = cbench("runs", "salvage", runs[0])
    assert saved.returncode == 0, saved.stderr
    assert "lost: event 4" in saved.stderr
    file = tmp_path / f"{runs[0]}.run"
    other = str(tmp_path / "other")
    assert cbench("import", file, CBENCH_HOME=other).stdout == f"{runs[0]}\n"
    resumed = cbench("resume", "last", CBENCH_HOME=other)
    assert resumed.returncode == 0, resumed.stderr
    sound = cbench("doctor", "--deep", CBENCH_HOME=other)
    assert sound.returncode == 0, sound.stdout
    assert "all is what was written: 1 runs" in sound.stdout
    whole = strict(cbench("show", "last", "--output", "json", CBENCH_HOME=other).stdout)
    assert (whole["state"], whole["completed_rows"]) == ("succeeded", 3)


def test_pruning_spares_pinned_runs_and_says_what_it_would_do(
    cbench: Cbench, runs: list[str]
) -> None:
    assert cbench("runs", "pin", runs[0]).returncode == 0
    dry = cbench("runs", "prune", "--keep", "0", "--dry-run", "--output", "json")
    assert [each["run_id"] for each in strict(dry.stdout)] == [runs[1]]
    assert [each["why"] for each in strict(dry.stdout)] == ["count"]
    assert cbench("runs", "unpin", runs[0]).returncode == 0
    kept = cbench("runs", "prune", "--older-than", "1h", "--max-bytes", "1G")
    assert "deleted 0 runs" in kept.stderr
    pruned = cbench("runs", "prune", "--keep", "1")
    assert f"deleted {runs[0]}" in pruned.stderr
    assert [run["run_id"] for run in strict(cbench("runs", "--output", "json").stdout)] == [runs[1]]


def test_pins_and_pruning_go_through_a_daemon_that_is_named(
    cbench: Cbench, runs: list[str], tmp_path: Path
) -> None:
    with DaemonProcess(tmp_path / "home") as daemon:
        there = {"CBENCH_SERVER": daemon.address}
        assert cbench("runs", "pin", runs[0], **there).stderr == f"pinned {runs[0]}\n"
        dry = cbench("runs", "prune", "--keep", "0", "--dry-run", "--output", "json", **there)
        assert [(each["run_id"], each["why"]) for each in strict(dry.stdout)] == [
            (runs[1], "count")
        ]
        assert cbench("runs", "unpin", runs[0][:-1], **there).stderr == f"unpinned {runs[0]}\n"
        assert "say which runs to delete" in complaint(cbench("runs", "prune", **there))
        pruned = cbench("runs", "prune", "--keep", "1", **there)
        assert f"deleted {runs[0]}" in pruned.stderr
        left = strict(cbench("runs", "--output", "json", **there).stdout)
        assert [run["run_id"] for run in left] == [runs[1]]
        unknown = cbench("runs", "pin", "nope", **there)
        assert unknown.returncode == 2
        assert 'no run "nope"' in complaint(unknown)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--dry-run",), "say which runs to delete"),
        (("--older-than", "30"), '"30" is not an age; write it as 12h, 30d or 8w'),
        (("--max-bytes", "5X"), '"5X" is not a size; write it as 500M or 5G'),
    ],
)
def test_a_rule_that_says_nothing_is_refused(
    cbench: Cbench, flags: tuple[str, ...], message: str
) -> None:
    refused = cbench("runs", "prune", *flags)
    assert refused.returncode == 2
    assert message in complaint(refused)


def test_pruning_without_a_rule_finishes_what_was_cut_off_and_deletes_no_run(
    cbench: Cbench, runs: list[str], home: Path
) -> None:
    with closing(connect(home / "cbench.db")) as connection:
        assert Transaction(connection, careful=False).mark_deleted(runs[0]) == 1
    assert "so does: cbench runs prune" in cbench("doctor", "--deep").stdout
    assert cbench("runs", "prune").returncode == 0
    assert "cut off" not in cbench("doctor", "--deep").stdout
    listed = json.loads(cbench("runs", "--json").stdout)
    assert [run["run_id"] for run in listed] == runs[1:]
