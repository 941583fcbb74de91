"""What a system did, as a person reads it below the table."""

from pathlib import Path

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
