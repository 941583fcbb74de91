"""Three daemons of one store, with replicas that are dialled and attached, and faults of all kinds.

What each fault does alone is shown by other tests; here they fall on top of one another.
"""

import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cbench_client import BenchClient
from tests.e2e.following import Followed
from tests.e2e.processes import DaemonProcess, Process, examples, wait_until
from tests.e2e.test_replicas import REPLICA, start_replica
from tests.fixtures import preloaded
from tests.fixtures.ports import held_port
from tests.fixtures.postgres import PostgresServer, postgres_server
from tests.fixtures.preloaded import CBENCH

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]

ROWS = 1500
TIMES = 2
"""How often each kind of fault falls."""
LEASE_S = 3.0


class House:
    """What has faults, each of which is over when its method returns."""

    def __init__(self, server: PostgresServer, home: Path, chance: random.Random) -> None:
        self._server, self._home, self._chance = server, home, chance
        self.store = server.new_store()
        self._ports = [held_port() for _ in range(3)]
        self.address = ",".join(f"127.0.0.1:{port}" for port in self._ports)
        self.errors: list[list[str]] = []
        self.daemons = [self._daemon(place) for place in range(3)]
        self._dialled_at = [held_port() for _ in range(3)]
        self._dialled = [start_replica(where=port) for port in self._dialled_at]
        self._attached = [self._attach() for _ in range(2)]

    @property
    def dialled(self) -> dict[str, Any]:
        first, *others = [each.address for each in self._dialled]
        return {"target": first, "replicas": others}

    def _daemon(self, place: int) -> DaemonProcess:
        daemon = DaemonProcess(
            self._home / str(place),
            *("--lease-seconds", str(LEASE_S)),
            port=self._ports[place],
            env={"CBENCH_STORE": self.store},
        )
        self.errors.append(daemon.errors)
        return daemon

    def _attach(self) -> Any:
        command = [sys.executable, REPLICA, f"attach:{self.address}", "1"]
        return preloaded.Popen(command)

    def _pause(self, least: float, most: float) -> None:
        time.sleep(self._chance.uniform(least, most))

    def kill(self, place: int) -> None:
        self.daemons[place].kill()
        self._pause(0, LEASE_S)
        self.daemons[place] = self._daemon(place)

    def drain(self, place: int) -> None:
        assert self.daemons[place].terminate(60) == 0
        self.daemons[place] = self._daemon(place)

    def sleep(self, place: int) -> None:
        self.daemons[place].process.send_signal(signal.SIGSTOP)
        self._pause(LEASE_S, 2 * LEASE_S)
        self.daemons[place].process.send_signal(signal.SIGCONT)

    def database(self, _: int) -> None:
        self._server.stop(self._chance.choice([signal.SIGQUIT, signal.SIGINT]))
        self._pause(0, LEASE_S)
        self._server.start()

    def replica(self, place: int) -> None:
        self._dialled[place].kill()
        self._dialled[place] = start_replica(where=self._dialled_at[place])

    def attachment(self, place: int) -> None:
        self._attached[place % 2].kill()
        self._attached[place % 2].wait()
        self._attached[place % 2] = self._attach()

    def close(self) -> None:
        for each in self._attached:
            each.kill()
            each.wait()
        started: list[Process] = [*self.daemons, *self._dialled]
        for process in started:
            if process.process.poll() is None:
                process.process.send_signal(signal.SIGCONT)
                process.kill()


@contextmanager
def house(tmp_path: Path, chance: random.Random) -> Iterator[House]:
    with postgres_server() as server:
        built = House(server, tmp_path, chance)
        try:
            yield built
        finally:
            built.close()


def test_faults_of_all_kinds_on_top_of_one_another_cost_no_row(
    tmp_path: Path, chance: random.Random
) -> None:
    with house(tmp_path, chance) as built, BenchClient(built.address) as client:
        wait_until(lambda: "worker" in str(client.components()))
        digest, _ = client.upload(examples(ROWS))
        given = {"datasets": [{"name": "given", "upload": digest}], "timed_rows": 5}
        systems = [built.dialled, {"attached": "worker"}]
        runs = {client.start({**given, "systems": [each]}): Followed() for each in systems}

        def watch(run_id: str, seen: Followed) -> None:
            with BenchClient(built.address) as watching:
                for event in watching.watch(run_id):
                    seen.take(event)

        watchers = [threading.Thread(target=watch, args=run) for run in runs.items()]
        for each in watchers:
            each.start()
        kinds: list[Callable[[int], None]] = TIMES * [
            *(built.kill, built.drain, built.sleep, built.database),
            *(built.replica, built.attachment),
        ]
        chance.shuffle(kinds)
        for fault in kinds:
            # A run that makes no rows between the deaths of its daemons is taken for their cause.
            before = {run_id: len(seen.rows) for run_id, seen in runs.items()}
            wait_until(
                lambda before=before: all(
                    seen.finished or len(seen.rows) >= before[run_id] + 20
                    for run_id, seen in runs.items()
                ),
                timeout=300,
            )
            fault(chance.randrange(3))
        for each in watchers:
            each.join(300)
        for seen in runs.values():
            assert (seen.state, seen.failures) == ("SUCCEEDED", {})
            assert sorted(seen.keys) == [("worker", ordinal, 0) for ordinal in range(ROWS)]
        assert [line for lines in built.errors for line in lines if "Traceback" in line] == []
        command = [str(CBENCH), "store", "check", built.store]
        checked = preloaded.run(command, capture_output=True, text=True)
        assert (checked.returncode, checked.stderr) == (0, "")
