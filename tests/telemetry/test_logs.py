"""The log of a daemon: one JSON object per line, whoever writes, with a line for each step."""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from cbench_client import BenchClient
from tests.e2e.following import follow
from tests.e2e.processes import DaemonProcess, start_system, wait_until
from tests.fixtures.ports import held_port

SPEC = {"datasets": [{"name": "mini-qa", "max_examples": 6}], "anchors": False}
BUILTIN = {**SPEC, "systems": [{"builtin": "identity"}]}


def entries(daemon: DaemonProcess) -> list[dict[str, Any]]:
    """Read all that the daemon wrote so far; a line that is no JSON object raises."""
    found = [json.loads(line) for line in list(daemon.errors)]
    assert all(isinstance(entry, dict) for entry in found)
    return found


def test_nothing_but_json_is_on_stderr_not_even_of_grpcs_core(tmp_path: Path) -> None:
    # A process of its own: gRPC's core reads these when it is loaded.
    loud = {"GRPC_VERBOSITY": "DEBUG", "GRPC_TRACE": "connectivity_state,http"}
    program = "import sys; from cbench_server.daemon import main; sys.exit(main())"
    daemon = subprocess.Popen(
        [sys.executable, "-c", program, "--address", "127.0.0.1:0", "--home", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=(tmp_path / "stderr").open("wb"),
        text=True,
        env={**os.environ, **loud},
    )
    assert daemon.stdout is not None
    with daemon, daemon.stdout:
        with BenchClient(daemon.stdout.readline().strip().rpartition("|")[2]) as client:
            follow(client.evaluate(BUILTIN))
        daemon.terminate()
        assert daemon.wait(60) == 0
    found = [json.loads(line) for line in (tmp_path / "stderr").read_text().splitlines()]
    foreign = [entry for entry in found if entry["logger"] == "stderr"]
    assert foreign, "gRPC's core was asked to talk, and nothing of it came"
    assert all({"time", "level", "logger", "message"} <= set(entry) for entry in found)
    assert found[-1]["message"] == "stopped"


def test_a_daemon_whose_log_nobody_takes_any_more_works_and_ends(tmp_path: Path) -> None:
    """A line that could not be written was told on stderr, and that line on stderr, and so on."""
    program = "import sys; from cbench_server.daemon import main; sys.exit(main())"
    daemon = subprocess.Popen(
        [sys.executable, "-c", program, "--address", "127.0.0.1:0", "--home", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert daemon.stdout is not None
    assert daemon.stderr is not None
    daemon.stderr.close()
    with daemon, daemon.stdout:
        try:
            address = daemon.stdout.readline().strip().rpartition("|")[2]
            with BenchClient(address) as client:
                assert follow(client.evaluate(BUILTIN)).state == "SUCCEEDED"
            daemon.terminate()
            assert daemon.wait(60) == 0
        finally:
            daemon.kill()


def test_a_run_has_a_line_when_it_starts_and_ends(tmp_path: Path) -> None:
    with DaemonProcess(tmp_path / "home") as daemon, start_system("invalid-utf8") as failing:
        with BenchClient(daemon.address) as client:
            run_id = follow(client.evaluate(BUILTIN)).finished.run_id
            systems = [{"target": failing.address, "name": "odd"}]
            odd = follow(client.evaluate({**SPEC, "systems": systems}))
            failed = odd.finished.run_id
        wait_until(lambda: len(of_run(daemon, failed, "run ended")) == 1)
        assert [entry["message"] for entry in of_run(daemon, run_id)] == [
            "run accepted",
            "run works",
            "run ended",
        ]
        [ended] = of_run(daemon, run_id, "run ended")
        assert (ended["state"], ended["rows"], ended["failed_rows"]) == ("SUCCEEDED", 6, 0)
        # Of six rows that fail alike, one has a line at this level.
        [row] = of_run(daemon, failed, "row failed")
        assert row["system"] == "odd"
        assert row["reason"] == odd.rows[0].failure.reason
        assert row["row"] in range(6)


def test_a_run_that_waits_says_for_what(tmp_path: Path) -> None:
    port = held_port()
    with DaemonProcess(tmp_path / "home") as daemon, BenchClient(daemon.address) as client:
        with start_system("echo", "", "0.05", port=port) as system:
            spec = {"systems": [{"target": system.address}], "repeats": 100, **SPEC}
            run_id = client.start(spec)
            wait_until(lambda: client.get(run_id).progress.completed_rows > 0)
        wait_until(lambda: bool(of_run(daemon, run_id, "run waits")))
        assert str(port) in of_run(daemon, run_id, "run waits")[0]["reason"]
        with start_system("echo", "", "0.05", port=port):
            wait_until(lambda: len(of_run(daemon, run_id, "run works")) == 2)
        client.cancel(run_id)
        wait_until(lambda: bool(of_run(daemon, run_id, "run ended")))
        assert of_run(daemon, run_id, "run ended")[0]["state"] == "CANCELLED"


def of_run(daemon: DaemonProcess, run_id: str, message: str = "") -> list[dict[str, Any]]:
    return [
        entry
        for entry in entries(daemon)
        if entry.get("run_id") == run_id
        and entry["logger"] == "cbench_server.runs"
        and message in ("", entry["message"])
    ]


def test_a_line_from_the_midst_of_a_run_names_the_run() -> None:
    from cbench_server.daemon.logs import _JsonFormatter, _name_the_run
    from cbench_server.runs.run_owner import WORKED_ON

    record = logging.makeLogRecord({"msg": "a worker was lost", "levelname": "WARNING"})
    token = WORKED_ON.set("a-run")
    try:
        assert _name_the_run(record)
    finally:
        WORKED_ON.reset(token)
    assert json.loads(_JsonFormatter().format(record))["run_id"] == "a-run"
