"""Matched controls survive the death of their daemon, as every row does."""

from collections import Counter
from pathlib import Path

from cbench_client import BenchClient
from tests.fixtures.ports import held_port

from .following import Followed
from .processes import DaemonProcess, examples

_ROWS = 400
_WORDS = " ".join(f"word{number}" for number in range(60))


def test_controls_go_on_where_a_killed_daemon_left_them(tmp_path: Path) -> None:
    home, port = tmp_path / "home", held_port()
    daemon = DaemonProcess(home, port=port)
    with BenchClient(daemon.address) as client:
        given = examples(_ROWS, f"{_WORDS} The capital of France is Paris.")
        dataset, _ = client.upload(given)
        shortened = [{"id": each["id"], "context": "France is Paris."} for each in given]
        outputs, _ = client.upload(shortened)
        spec = {
            "systems": [{"predictions": outputs, "name": "short"}],
            "datasets": [{"name": "given", "upload": dataset}],
            "matched_controls": True,
        }
        seen = Followed()
        try:
            for event in client.evaluate(spec, reconnect_for=60):
                seen.take(event)
                # Once, in the middle of the controls.
                if daemon is not None and sum("@" in row.system for row in seen.rows) > 30:
                    daemon.kill()
                    restarted = DaemonProcess(home, port=port)
                    daemon = None
        finally:
            (daemon or restarted).kill()
    assert daemon is None, "it was killed"
    assert seen.state == "SUCCEEDED"
    assert max(Counter(seen.keys).values()) == 1
    assert Counter(row.system for row in seen.rows) == {
        "short": _ROWS,
        "truncate-tail@short": _ROWS,
        "truncate-head@short": _ROWS,
        "random-drop@short": 5 * _ROWS,
    }
    assert next(summary.system for summary in seen.finished.summaries) == "short"
    (note,) = seen.finished.notes
    assert note.system == "short"
