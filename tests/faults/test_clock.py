"""Wall clocks that jump: no deadline or row suffers, and no run ends before it began."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from cbench_client import BenchClient
from tests.e2e.following import follow
from tests.e2e.processes import start_system, wait_until

from .machine import demand
from .test_requests import spec_of

CLOCK = Path(__file__).with_name("jumping_clock.c")
HOUR = 3600
PROGRAM = "import sys; from cbench_server.daemon import main; sys.exit(main())"


@pytest.mark.faults
@pytest.mark.timeout(300)
def test_a_run_does_not_mind_a_clock_that_jumps(tmp_path: Path, chance: random.Random) -> None:
    library, jumps, rows = tmp_path / "clock.so", tmp_path / "jumps", 1200
    demand("cc", "-shared", "-fPIC", "-o", library, CLOCK, "-ldl")
    jumps.write_text("0")
    preload = {"LD_PRELOAD": str(library), "JUMPS": str(jumps)}
    # Not forked from a process that has read its clock: the library comes first in a new one.
    daemon = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "--address", "127.0.0.1:0", "--home", tmp_path / "home"],
        env={**os.environ, **preload, "CBENCH_HANDSHAKE": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert daemon.stdout is not None
        address = daemon.stdout.readline().strip().rpartition("|")[2]
        with start_system("echo", "", "0.02") as system, BenchClient(address) as client:
            run_id = client.start(spec_of(client, system, rows, row_timeout=20.0))
            started = client.get(run_id).create_time.seconds
            offsets = [HOUR, -HOUR, 24 * HOUR, -24 * HOUR, 1, -1]
            chance.shuffle(offsets)
            for number, offset in enumerate([*offsets, -HOUR]):
                goal = 100 * (number + 1)
                wait_until(lambda goal=goal: client.get(run_id).progress.completed_rows >= goal)
                jumps.with_suffix(".new").write_text(str(offset))
                jumps.with_suffix(".new").rename(jumps)
            seen = follow(client.watch(run_id))
            run = client.get(run_id)
            # The clock has really been put back.
            second = client.get(client.start(spec_of(client, system, 1)))
            assert second.create_time.seconds < started - HOUR / 2
    finally:
        daemon.terminate()
        daemon.wait(40)
        assert daemon.stdout is not None
        daemon.stdout.close()
    assert (seen.state, seen.failures) == ("SUCCEEDED", {})
    assert sorted(seen.keys) == [("echo", ordinal, 0) for ordinal in range(rows)]
    assert "WAITING" not in seen.states
    assert run.end_time.ToNanoseconds() >= run.create_time.ToNanoseconds()
