"""`cbench store copy` and `cbench store check`, between both kinds of store."""

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fixtures.filled import SIZE, MakeExample, MakeRow, MakeRun, cbench, fill
from tests.fixtures.postgres import PASSWORD, PostgresServer
from tests.fixtures.stores import Place

Made = Callable[..., Place]


@pytest.fixture
def made(tmp_path: Path, request: pytest.FixtureRequest) -> Made:
    def make(kind: str) -> Place:
        home = tmp_path / f"{kind}-{len(list(tmp_path.iterdir()))}"
        home.mkdir()
        server = request.getfixturevalue("postgres") if kind == "postgresql" else None
        return Place(home, server.new_store() if server else "")

    return make


def copied(*words: str, **environment: str) -> dict[str, dict[str, str]]:
    """Copy, and return what became of each run and upload."""
    done = cbench("store", "copy", *words, "--json", **environment)
    assert PASSWORD not in done.stdout + done.stderr
    assert done.stdout, done.stderr
    document = json.loads(done.stdout)
    left = [each for part in document.values() for each in part if each["outcome"] == "left out"]
    assert done.returncode == bool(left)
    return {
        part: {each["name"]: each["outcome"] for each in found} for part, found in document.items()
    }


@pytest.mark.parametrize(
    ("before", "after"),
    [("sqlite", "postgresql"), ("postgresql", "sqlite"), ("sqlite", "sqlite")],
)
async def test_a_copy_there_and_back_is_the_same_to_the_byte(
    made: Made,
    make_run: MakeRun,
    make_row: MakeRow,
    make_example: MakeExample,
    before: str,
    after: str,
) -> None:
    first, second, third = made(before), made(after), made(before)
    digest = await fill(first.open(), first.home, make_run, make_row, make_example)
    home = {"CBENCH_HOME": str(second.home)}
    expected = {"r1": "copied", "r2": "copied", "r3": "left out"}
    found = copied(first.argument, second.argument, **home)
    assert found == {"runs": expected, "uploads": {digest: "copied"}}
    # A second time it changes nothing.
    again = copied(first.argument, second.argument, **home)
    assert again["runs"] == {"r1": "there already", "r2": "there already", "r3": "left out"}
    assert again["uploads"] == {digest: "there already"}
    assert copied(second.argument, third.argument, CBENCH_HOME=str(third.home))["runs"] == {
        "r1": "copied",
        "r2": "copied",
    }
    exported = [place.home / "r1.run" for place in (first, third)]
    for place, path in zip((first, third), exported, strict=True):
        done = cbench(
            *("export", "r1", "--format", "run", "-o", str(path)),
            CBENCH_HOME=str(place.home),
            CBENCH_STORE=place.address,
        )
        assert done.returncode == 0, done.stderr
    assert exported[0].read_bytes() == exported[1].read_bytes()
    store = second.open()
    pinned = await store.read(
        lambda connection: connection.execute("SELECT run_id FROM runs WHERE pinned").fetchall()
    )
    assert [run_id for (run_id,) in pinned] == ["r2"]
    found_run = await store.find_request("qr1")
    assert found_run is not None
    assert found_run.completed_rows == SIZE
    await store.close()
    for place in (first, second):
        checked = cbench("store", "check", place.argument, CBENCH_HOME=str(place.home))
        assert checked.returncode == 0, checked.stdout
        assert "all is what was written" in checked.stdout
    if not second.is_sqlite:
        deep = cbench("doctor", "--deep", CBENCH_HOME=str(second.home), CBENCH_STORE=second.address)
        assert "all is what was written: 2 runs" in deep.stdout


async def test_a_copy_that_is_killed_goes_on_with_the_next(
    made: Made, make_run: MakeRun, make_row: MakeRow, make_example: MakeExample
) -> None:
    first, second = made("sqlite"), made("postgresql")
    await fill(first.open(), first.home, make_run, make_row, make_example)
    environment = {"CBENCH_HOME": str(second.home)}
    for point in ("import.begun", "import.batch", "import.finished"):
        done = cbench(
            *("store", "copy", first.argument, second.argument),
            **environment,
            CBENCH_FAILPOINT=point,
        )
        assert done.returncode == -signal.SIGKILL, (point, done.stderr)
        # What is waited for else: whoever owned the half of a run is dead.
        second.sql("UPDATE leases SET expires = 0")
    found = copied(first.argument, second.argument, **environment)
    assert found["runs"]["r2"] == "copied"
    assert found["runs"]["r1"] in ("copied", "there already")
    assert second.sql("SELECT count(*) FROM runs") == [(2,)]
    checked = cbench("store", "check", second.argument, **environment)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_damage_is_found_named_and_not_copied(
    made: Made, make_run: MakeRun, make_row: MakeRow, make_example: MakeExample, kind: str
) -> None:
    first, second = made(kind), made("sqlite")
    await fill(first.open(), first.home, make_run, make_row, make_example)
    zeros = "zeroblob(3)" if kind == "sqlite" else "'\\x000000'"
    first.sql(f"UPDATE events SET head = {zeros} WHERE run = 1 AND seq = 7")
    first.sql("UPDATE examples SET digest = 'x' WHERE run = 1 AND ordinal = 2")
    first.sql("UPDATE run_systems SET completed = completed + 1 WHERE run = 2")
    environment = {"CBENCH_HOME": str(first.home), "CBENCH_STORE": first.address}
    for words in (("store", "check"), ("doctor", "--deep")):
        checked = cbench(*words, "--output", "json", **environment)
        assert checked.returncode == 1
        found = {each["subject"]: each for each in json.loads(checked.stdout)}
        assert "event 7; example 2" in found["run r1"]["message"]
        assert f"{SIZE:,} of {SIZE + 1:,} events" in found["run r1"]["fix"]
        assert "run r2" in found
        assert "run r3" not in found
    copies = copied(first.argument, second.argument, **environment)
    assert copies["runs"] == dict.fromkeys(["r1", "r2", "r3"], "left out")
    saved = cbench("runs", "salvage", "r1", "-o", str(second.home / "r1.run"), **environment)
    assert saved.returncode == 0, saved.stderr
    assert f"{SIZE:,} of {SIZE + 1:,} events" in saved.stderr


def test_stores_that_are_not_there_are_refused(tmp_path: Path, postgres: PostgresServer) -> None:
    nowhere = str(tmp_path / "nowhere")
    gone = cbench("store", "copy", nowhere, str(tmp_path))
    assert (gone.returncode, "there is no store in" in gone.stderr) == (2, True)
    assert not Path(nowhere).exists()
    none = cbench("store", "check", nowhere)
    assert (none.returncode, "there is no store in" in none.stderr) == (2, True)
    wrong = cbench("store", "check", postgres.address().replace("cbench:", "cbench:x"))
    assert wrong.returncode == 1
    assert "Check the user, the password" in wrong.stdout
    assert PASSWORD not in wrong.stdout + wrong.stderr
