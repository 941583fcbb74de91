"""A suite over RPC: its figure waits for all rows, whatever happens to the daemon meanwhile."""

from pathlib import Path
from typing import Any

from cbench_client import BenchClient
from cbench_server.rpc.runs import run_from_proto
from tests.fixtures.ports import held_port
from tests.fixtures.small_suite import EXAMPLES, TASKS, write_mirror

from .following import follow
from .processes import DaemonProcess, start_system, wait_until

KEY = "suite:bbh:all"


def _figure(run: Any) -> float | None:
    """The mean over what the mirror has, which is a part of what is published."""
    return run_from_proto(run).summary["echo"].get("suite_part:bbh:all")


def test_a_killed_and_a_cancelled_run_have_the_figure_when_they_are_complete(
    tmp_path: Path,
) -> None:
    mirror, port, home = write_mirror(tmp_path / "hub"), held_port(), tmp_path / "home"
    flags = ("--data-dir", str(mirror))
    daemon = DaemonProcess(home, *flags, port=port)
    with (
        start_system("echo", "", "0.02", "12", str(tmp_path / "gate")) as system,
        BenchClient(daemon.address) as client,
    ):
        try:
            spec = {
                "systems": [{"target": system.address}],
                "datasets": [{"name": "bbh", "config": "all"}],
                "group_by": ["config"],
                "max_concurrency": 1,
            }
            run_id = client.start(spec)
            wait_until(lambda: client.get(run_id).progress.completed_rows >= 3)
            client.cancel(run_id)
            cancelled = client.get(run_id)
            assert 3 <= cancelled.progress.completed_rows < 30
            assert _figure(cancelled) is None
            (text,) = [note.text for note in cancelled.notes if note.code == "SUITE_INCOMPLETE"]
            assert text.startswith("bbh:all has no figure: the run was cancelled before all rows")

            (tmp_path / "gate").touch()
            client.resume(run_id)
            wait_until(lambda: client.get(run_id).progress.completed_rows >= 10)
            daemon.kill()
            daemon = DaemonProcess(home, *flags, port=port)
            seen = follow(client.watch(run_id))
            assert seen.state == "SUCCEEDED"
            finished = client.get(run_id)
            rows = list(client.rows(run_id))
        finally:
            daemon.kill()
    assert [ref.config for ref in finished.spec.datasets] == [*TASKS]
    assert [row.dataset for row in rows] == [
        f"bbh:{task}" for task, count in EXAMPLES.items() for _ in range(count)
    ]
    assert _figure(finished) is not None
    (text,) = [note.text for note in finished.notes if note.code == "SUITE_INCOMPLETE"]
    assert text.startswith("bbh:all has no figure: of the 250 examples")
    assert run_from_proto(finished).summary["echo"][KEY] is None
    assert f"group:config={TASKS[0]}" in run_from_proto(finished).summary["echo"]
