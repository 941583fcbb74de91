"""Anchors survive the death of their daemon, as every row does."""

import threading
from collections import Counter
from pathlib import Path

from cbench_client import BenchClient
from tests.fixtures.ports import held_port

from .following import Followed
from .processes import DaemonProcess, examples
from .test_models import serving_model

_ROWS = 30


def test_anchors_go_on_where_a_killed_daemon_left_them(tmp_path: Path) -> None:
    home, port = tmp_path / "home", held_port()
    daemons = [DaemonProcess(home, port=port)]
    back = threading.Event()
    with serving_model() as model, BenchClient(daemons[0].address) as client:

        def hold() -> None:
            # In the middle of the anchors nothing is answered before the daemon is back.
            if len(model.requests) > 2 * _ROWS:
                back.wait(60)

        model.before_answering = hold
        dataset, _ = client.upload(examples(_ROWS))
        spec = {
            "systems": [{"builtin": "truncate-head"}],
            "datasets": [{"name": "given", "upload": dataset}],
            "reader": {"base_url": model.url},
        }
        seen = Followed()
        try:
            for event in client.evaluate(spec, reconnect_for=60):
                seen.take(event)
                if len(daemons) == 1 and any("@reader" in row.system for row in seen.rows):
                    daemons[0].kill()
                    back.set()
                    daemons.append(DaemonProcess(home, port=port))
        finally:
            back.set()
            daemons[-1].kill()
    assert len(daemons) == 2, "it was killed"
    assert seen.state == "SUCCEEDED"
    assert max(Counter(seen.keys).values()) == 1
    assert Counter(row.system for row in seen.rows) == dict.fromkeys(
        ("truncate-head", "identity@reader", "identity-again@reader", "no-context@reader"), _ROWS
    )
    assert all("ANCHOR" in row.marks for row in seen.rows if "@" in row.system)
    assert {note.code for note in seen.finished.notes} >= {"NOISE_FLOOR", "GUESSABLE"}
