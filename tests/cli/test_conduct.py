"""What a system did, as a person reads it below the table."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cbench, Serve, strict


def test_rows_asked_again_are_said_and_not_counted(
    cbench: Cbench, serve: Serve, tmp_path: Path
) -> None:
    counted = tmp_path / "calls"
    system = serve("wavering", counted)
    table = cbench("run", "--system", system, "--dataset", "mini-qa").stdout
    assert "asked again, it answered 5 of 5 rows differently." in table
    assert ", 48 rows" in table
    assert len(counted.read_text()) == 53
    off = cbench(
        *("run", "--system", system, "--dataset", "mini-qa", "--ask-again", 0, "--output", "json")
    )
    run = strict(off.stdout)
    assert (run["completed_rows"], len(counted.read_text())) == (48, 101)
    assert not [note for note in run["notes"] if note["code"] == "NONDETERMINISTIC"]


def test_repeats_tell_the_share_that_differed(cbench: Cbench, serve: Serve, tmp_path: Path) -> None:
    counted = tmp_path / "calls"
    finished = cbench(
        *("run", "--system", serve("wavering", counted), "--builtin", "truncate-tail"),
        *("--dataset", "mini-qa", "-n", 12, "--repeats", 2, "--output", "json"),
    )
    run = strict(finished.stdout)
    said = [note["text"] for note in run["notes"] if note["code"] == "NONDETERMINISTIC"]
    assert said == [
        "wavering is not deterministic: its 2 tries differ on 12 of 12 examples (100.0%)."
    ]
    assert run["summary"]["wavering"]["num_differed"] == 12.0
    assert run["summary"]["truncate-tail"]["num_asked_twice"] == 12.0
    assert run["summary"]["truncate-tail"]["num_differed"] == 0.0
    # Repeats tell, so nothing is asked beyond them.
    assert len(counted.read_text()) == 24


_REGISTERED = """
import threading
from pathlib import Path

from cbench_server.registry import register_system

class Mine:
    name = "mine"

    def process(self, example):
        with Path("threads").open("a") as threads:
            threads.write(f"{threading.current_thread() is threading.main_thread()}\\n")
        return {**example, "context": example["context"][:60]}

register_system("mine", Mine)
"""


def test_a_registered_system_is_tested_as_others_are(
    cbench: Cbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "registers_mine.py").write_text(_REGISTERED)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    imported = ("--import", "registers_mine")
    done = cbench(
        *("run", *imported, "--builtin", "mine", "--builtin", "identity", "--controls", "matched"),
        *("--dataset", "mini-qa", "-n", 12, "--output", "json"),
    )
    assert done.returncode == 0, done.stderr
    run = strict(done.stdout)
    assert [each["location"] for each in run["config"]["systems"]] == ["installed", "builtin"]
    # It is asked again, held to controls beside the baseline, and called off the daemon's loop.
    assert run["summary"]["mine"]["num_asked_twice"] == 5.0
    assert run["systems"][2:] == [
        f"{cut}@mine" for cut in ("truncate-tail", "truncate-head", "random-drop")
    ]
    assert (tmp_path / "threads").read_text() == "False\n" * 17
    listed = json.loads(cbench("systems", *imported, "--json").stdout)
    where = {each["name"]: each["location"] for each in listed}
    assert (where["mine"], where["identity"]) == ("installed", "builtin")
