"""`cbench runs archive`: out of either store into files, verified, and back."""

import gzip
import json
import os
import signal
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from tests.fixtures.filled import SIZE, MakeExample, MakeRow, MakeRun, cbench, fill
from tests.fixtures.stores import Place

Done = subprocess.CompletedProcess[str]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "archive"


@pytest.fixture
async def full(
    place: Place, make_run: MakeRun, make_row: MakeRow, make_example: MakeExample
) -> Place:
    """A place with the runs r1, r2, which is pinned, and r3, which is not over."""
    await fill(place.open(), place.home, make_run, make_row, make_example)
    return place


def at(place: Place, *words: str, **environment: str) -> Done:
    where = {"CBENCH_HOME": str(place.home), "CBENCH_STORE": place.address}
    return cbench(*words, **where, **environment)


def stored(place: Place) -> list[str]:
    found = place.sql("SELECT run_id FROM runs WHERE NOT deleted ORDER BY run_id")
    return [run_id for (run_id,) in found]


def exported(place: Place, run_id: str) -> bytes:
    path = place.home / "exported.run"
    done = at(place, "export", run_id, "--format", "run", "-o", str(path))
    assert done.returncode == 0, done.stderr
    return path.read_bytes()


def test_an_archived_run_reads_back_to_the_byte(full: Place, archive: Path) -> None:
    before = exported(full, "r1")
    done = at(full, "runs", "archive", "r1", "r2", "--to", str(archive), "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert [(each["run_id"], each["rows"]) for each in document["archived"]] == [
        ("r1", SIZE),
        ("r2", 40),
    ]
    assert document["left"] == []
    assert sorted(os.listdir(archive)) == ["r1.json", "r1.run.gz", "r2.json", "r2.run.gz"]
    assert gzip.decompress((archive / "r1.run.gz").read_bytes()) == before
    assert json.loads((archive / "r1.json").read_text())["completed_rows"] == SIZE
    assert stored(full) == ["r3"]
    assert full.sql("SELECT count(*) FROM events WHERE run = 1") == [(0,)]
    # A second time, nothing is left to do; the file is read to say so.
    again = at(full, "runs", "archive", "r1", "--to", str(archive))
    assert again.returncode == 0, again.stderr
    assert f"archived already, {SIZE:,} rows" in again.stderr
    back = at(full, "import", str(archive / "r1.run.gz"))
    assert (back.returncode, back.stdout) == (0, "r1\n")
    assert exported(full, "r1") == before
    checked = at(full, "store", "check")
    assert checked.returncode == 0, checked.stdout


def test_runs_that_are_not_over_damaged_or_pinned_stay(full: Place, archive: Path) -> None:
    old = at(full, "runs", "archive", "--older-than", "1d", "--to", str(archive))
    assert old.returncode == 0, old.stderr
    # r2 is pinned, which counts where no run is named, and r3 is not over.
    assert stored(full) == ["r2", "r3"]
    zeros = "zeroblob(3)" if full.is_sqlite else "'\\x000000'"
    full.sql(f"UPDATE events SET head = {zeros} WHERE run = 2 AND seq = 7")
    left = at(full, "runs", "archive", "r2", "r3", "--to", str(archive), "--json")
    assert left.returncode == 1
    assert json.loads(left.stdout) == {"archived": [], "left": ["r2", "r3"]}
    assert "cbench runs salvage r2" in left.stderr
    assert "cbench cancel r3" in left.stderr
    assert stored(full) == ["r2", "r3"]
    assert sorted(os.listdir(archive)) == ["r1.json", "r1.run.gz"]


@pytest.mark.parametrize(
    ("point", "is_stored"),
    [
        ("archive.writing:3", True),
        ("archive.written", True),
        ("archive.verified", True),
        ("delete.marked", False),
        ("delete.piece:2", False),
    ],
)
def test_an_archive_that_is_killed_goes_on_with_the_next(
    full: Place, archive: Path, point: str, is_stored: bool
) -> None:
    before = exported(full, "r1")
    command = ("runs", "archive", "r1", "--to", str(archive))
    killed = at(full, *command, CBENCH_FAILPOINT=point)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert ("r1" in stored(full)) is is_stored
    if not full.is_sqlite:
        # What is waited for else: whoever owned the run is dead.
        full.sql("UPDATE leases SET expires = 0")
    done = at(full, *command)
    assert done.returncode == 0, done.stderr
    assert stored(full) == ["r2", "r3"]
    assert full.sql("SELECT count(*) FROM runs") == [(2,)]
    assert sorted(os.listdir(archive)) == ["r1.json", "r1.run.gz"]
    assert gzip.decompress((archive / "r1.run.gz").read_bytes()) == before


def test_nothing_is_deleted_for_a_file_that_is_not_the_run(full: Place, archive: Path) -> None:
    archive.mkdir(parents=True)
    whole = exported(full, "r1")
    other = exported(full, "r2")
    for content, message in (
        (whole[:-40], "is damaged (it ends early)"),
        (whole[:500] + b"x" + whole[501:], "is damaged"),
        (other, 'is not the run "r1" that the store has'),
    ):
        (archive / "r1.run.gz").write_bytes(content)
        refused = at(full, "runs", "archive", "r1", "--to", str(archive))
        assert refused.returncode == 1
        assert message in refused.stderr
        assert "Nothing was deleted" in refused.stderr
        assert "r1" in stored(full)
        assert (archive / "r1.run.gz").read_bytes() == content


def test_a_folder_that_cannot_be_written_costs_nothing(full: Place, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused = at(full, "runs", "archive", "r1", "--to", str(tmp_path / "file" / "x"))
    assert (refused.returncode, "cannot write into" in refused.stderr) == (2, True)
    (tmp_path / "full").mkdir()
    # A device that is always full.
    (tmp_path / "full" / "r1.run.gz.part").symlink_to("/dev/full")
    full_disk = at(full, "runs", "archive", "r1", "--to", str(tmp_path / "full"))
    assert full_disk.returncode == 1
    assert "No space left on device. Nothing was deleted" in full_disk.stderr
    assert stored(full) == ["r1", "r2", "r3"]


def test_what_is_not_said_or_not_there_is_refused(tmp_path: Path) -> None:
    place = Place(tmp_path / "home")
    for words, message in (
        (("--to", "x"), "name them, or pass --older-than AGE"),
        (("r1", "--older-than", "1d", "--to", "x"), "name them, or pass --older-than AGE"),
        (("r1",), "--to"),
        (("r1", "--to", str(tmp_path)), 'no run "r1"'),
        (("../home/cbench.db", "--to", str(tmp_path)), "no run"),
    ):
        refused = at(place, "runs", "archive", *words)
        assert refused.returncode == 2, refused.stderr
        assert message in refused.stderr
    elsewhere = at(place, "runs", "archive", "r1", "--to", "x", CBENCH_SERVER="host:1")
    assert "without --server" in elsewhere.stderr


def test_examples_that_another_run_shares_stay_for_it(tmp_path: Path) -> None:
    place = Place(tmp_path / "home")
    assert (
        at(place, "run", "--builtin", "identity", "--dataset", "mini-qa", "-n", "3").returncode == 0
    )
    again = at(place, "rescore", "last", "--evaluator", "string-match", "--quiet")
    assert again.returncode == 0, again.stderr
    with closing(sqlite3.connect(place.home / "cbench.db")) as connection:
        parent, child = (
            each for (each,) in connection.execute("SELECT run_id FROM runs ORDER BY id")
        )
    before = exported(place, child)
    done = at(place, "runs", "archive", parent, "--to", str(tmp_path / "archive"))
    assert done.returncode == 0, done.stderr
    assert exported(place, child) == before
    file = str(tmp_path / "archive" / f"{parent}.run.gz")
    refused = at(place, "import", file)
    assert (refused.returncode, "--new-id" in refused.stderr) == (1, True)
    back = at(place, "import", file, "--new-id")
    assert back.returncode == 0, back.stderr
    assert stored(place) == sorted([back.stdout.strip(), child])
    checked = at(place, "store", "check")
    assert checked.returncode == 0, checked.stdout
