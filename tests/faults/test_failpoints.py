"""A process killed between any two durable steps: the next one makes whole what it finds."""

import random
import shutil
import signal
import sqlite3
import tarfile
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from cbench_client import BenchClient, ClientError
from cbench_server.durable import failpoints
from tests.compatibility.test_old_store import ARCHIVE
from tests.e2e.following import follow
from tests.e2e.processes import DaemonProcess, examples, start_held, start_system, wait_until
from tests.fixtures.ports import held_port

from .commands import COMMANDS
from .test_requests import BUILTIN, spec_of

ROWS, RUNS, HITS = 60, 2, 10
SUCCEEDED, CANCELLED = 3, 5


def armed(name: str, count: int = 1) -> dict[str, str]:
    return {failpoints.VARIABLE: f"{name}:{count}"}


# How often each has killed a process, by that process's last words.
hits: Counter[str] = Counter()


def killed(daemon: DaemonProcess, name: str) -> None:
    """Wait for the death of a daemon, and count it."""
    assert daemon.process.wait(60) == -signal.SIGKILL
    wait_until(lambda: any(failpoints.last_words(name) in line for line in daemon.errors))
    hits[name] += 1


def is_exact(client: BenchClient, run_id: str, system: str, rows: int) -> None:
    """Check what was stored, and what whoever follows it sees."""
    seen = follow(client.watch(run_id))
    assert seen.state == "SUCCEEDED"
    assert sorted(seen.keys) == [(system, ordinal, 0) for ordinal in range(rows)]
    assert [row.ordinal for row in client.rows(run_id)] == [*range(rows)]


def try_to_follow(client: BenchClient, spec: dict[str, Any], request_id: str) -> None:
    """Follow the run; a daemon that died before it said which has to be asked again."""
    with suppress(ClientError):
        follow(client.evaluate(spec, request_id=request_id))


# How often a place is come to in the runs below, at least.
OFTEN = {"call": 4, "commit": 6}


def in_a_run(home: Path, name: str, chance: random.Random) -> None:
    port = held_port()
    count = chance.randint(1, OFTEN.get(name.partition(".")[0], RUNS))
    with (
        start_system("echo") as system,
        DaemonProcess(home, port=port, env=armed(name, count)) as daemon,
        BenchClient(daemon.address) as client,
    ):
        spec = spec_of(client, system, ROWS)
        requests = [f"request {number}" for number in range(RUNS)]
        followers = [
            threading.Thread(target=try_to_follow, args=(client, spec, request))
            for request in requests
        ]
        for follower in followers:
            follower.start()
        killed(daemon, name)
        with DaemonProcess(home, port=port), BenchClient(daemon.address) as again:
            runs = [follow(again.evaluate(spec, request_id=each)) for each in requests]
            for follower in followers:
                follower.join(60)
                assert not follower.is_alive()
            for seen in runs:
                is_exact(again, seen.finished.run_id, "echo", ROWS)
            assert len(list(again.list())) == RUNS


def while_taking_up(home: Path, name: str, chance: random.Random) -> None:
    """Recover after a death, or resume after a cancel."""
    is_resumed, gate = name.startswith("resume"), home.parent / "gate"
    goal = chance.randint(1, 100)
    with start_held(gate, goal) as system:
        with DaemonProcess(home) as daemon, BenchClient(daemon.address) as client:
            run_id = client.start(spec_of(client, system, 200))
            wait_until(lambda: client.get(run_id).progress.completed_rows >= goal)
            if is_resumed:
                client.cancel(run_id)
            daemon.kill()
        with DaemonProcess(home, env=armed(name)) as other:
            if is_resumed:
                with BenchClient(other.address) as asked:
                    wait_until(lambda: has_died_of(other, lambda: asked.resume(run_id)), 60)
            killed(other, name)
        gate.touch()
        with DaemonProcess(home) as daemon, BenchClient(daemon.address) as client:
            if is_resumed:
                assert client.get(run_id).state == CANCELLED
                client.resume(run_id)
            is_exact(client, run_id, "echo", 200)


def while_cancelling(home: Path, name: str, chance: random.Random) -> None:
    """Cancel what another process left."""
    gate, goal = home.parent / "gate", chance.randint(1, 50)
    with start_held(gate, goal) as system:
        with (
            DaemonProcess(home) as daemon,
            DaemonProcess(home, env=armed(name)) as other,
            BenchClient(daemon.address) as client,
            BenchClient(other.address) as asked,
        ):
            run_id = client.start(spec_of(client, system, 200))
            wait_until(lambda: client.get(run_id).progress.completed_rows >= goal)
            daemon.kill()
            wait_until(lambda: has_died_of(other, lambda: asked.cancel(run_id)), 60)
            killed(other, name)
        gate.touch()
        with DaemonProcess(home) as daemon, BenchClient(daemon.address) as client:
            # It goes on, unless that it is to be cancelled was stored before.
            if follow(client.watch(run_id)).state == "CANCELLED":
                client.resume(run_id)
            is_exact(client, run_id, "echo", 200)


def has_died_of(daemon: DaemonProcess, ask: Callable[[], Any]) -> bool:
    """Ask once; what the daemon before has forked may hold the run for another moment."""
    with suppress(ClientError):
        ask()
    return daemon.process.poll() is not None


def while_rescoring(home: Path, name: str, chance: random.Random) -> None:
    with DaemonProcess(home) as daemon, BenchClient(daemon.address) as client:
        parent = follow(client.evaluate(BUILTIN)).finished.run_id
    with DaemonProcess(home, env=armed(name)) as daemon, BenchClient(daemon.address) as client:
        with suppress(ClientError):
            client.rescore(parent, request_id="again")
        killed(daemon, name)
    with DaemonProcess(home) as daemon, BenchClient(daemon.address) as client:
        child = client.rescore(parent, request_id="again").run_id
        before = [row.scores for row in client.rows(parent)]
        is_exact(client, child, "truncate-tail", len(before))
        assert [row.scores for row in client.rows(child)] == before
        assert len(list(client.list())) == 2


def while_uploading(home: Path, name: str, chance: random.Random) -> None:
    sent = examples(chance.randint(1, 300))
    with DaemonProcess(home, env=armed(name)) as daemon, BenchClient(daemon.address) as client:
        with pytest.raises(ClientError):
            client.upload(sent)
        killed(daemon, name)
    with DaemonProcess(home) as daemon, BenchClient(daemon.address) as client:
        digest, count = client.upload(sent)
        assert count == len(sent)
        given = {"name": "given", "upload": digest}
        seen = follow(client.evaluate({"systems": [{"builtin": "identity"}], "datasets": [given]}))
        assert len(seen.rows) == len(sent)
        wait_until(lambda: not list((home / "uploads").glob("*.part")))


def while_deleting(home: Path, name: str, chance: random.Random) -> None:
    with DaemonProcess(home) as daemon, BenchClient(daemon.address) as client:
        kept, gone = (follow(client.evaluate(BUILTIN)).finished.run_id for _ in range(2))
        rows = len(list(client.rows(kept)))
    count = chance.randint(1, 3) if name == "delete.piece" else 1
    with (
        DaemonProcess(home, env=armed(name, count)) as daemon,
        BenchClient(daemon.address) as client,
    ):
        with pytest.raises(ClientError):
            client.delete(gone)
        killed(daemon, name)
    with DaemonProcess(home) as daemon, BenchClient(daemon.address) as client:
        wait_until(lambda: owners(home) == {"runs": 1, "events": 1, "examples": 1})
        assert [run.run_id for run in client.list()] == [kept]
        is_exact(client, kept, "truncate-tail", rows)


def owners(home: Path) -> dict[str, int]:
    """Count the runs that have something in a table."""
    store = sqlite3.connect(home / "cbench.db")
    try:
        counted = {"runs": "id", "events": "run", "examples": "run"}
        return {
            table: store.execute(f"SELECT count(DISTINCT {key}) FROM {table}").fetchone()[0]
            for table, key in counted.items()
        }
    finally:
        store.close()


def in_a_command(which: str) -> "Scenario":
    """Have a command killed that is given by a person."""
    command = COMMANDS[which]

    def scenario(home: Path, name: str, chance: random.Random) -> None:
        home.parent.mkdir(exist_ok=True)
        folder = command.folder(home.parent / "folder")
        ended = command.kill(folder, f"{name}:1")
        assert ended.returncode == -signal.SIGKILL
        assert failpoints.last_words(name) in ended.stderr
        hits[name] += 1
        command.check(folder)
        shutil.rmtree(folder)

    return scenario


def while_asking_another(home: Path, name: str, chance: random.Random) -> None:
    """Cancel a run by a daemon that does not own it; whichever of the two dies, it is cancelled."""
    gate, goal = home.parent / "gate", chance.randint(1, 50)
    asks = name in ("intent.asked", "intent.forgotten")
    environments = ({}, armed(name)) if asks else (armed(name), {})
    with (
        start_held(gate, goal) as system,
        DaemonProcess(home, env=environments[0]) as owner,
        DaemonProcess(home, env=environments[1]) as other,
        BenchClient(owner.address) as client,
        BenchClient(other.address) as asked,
    ):
        run_id = client.start(spec_of(client, system, 200))
        wait_until(lambda: client.get(run_id).progress.completed_rows >= goal)
        asking = threading.Thread(target=try_to_cancel, args=(asked, run_id))
        asking.start()
        killed(other if asks else owner, name)
        lives = client if asks else asked
        wait_until(lambda: lives.get(run_id).state == CANCELLED, 60)
        gate.touch()
        # What was asked before is not done to what comes after it.
        with DaemonProcess(home) as third, BenchClient(third.address) as later:
            wait_until(lambda: resumed(later, run_id), 60)
            is_exact(later, run_id, "echo", 200)
            asking.join(60)
            assert not asking.is_alive()
            assert later.get(run_id).state == SUCCEEDED


def try_to_cancel(client: BenchClient, run_id: str) -> None:
    with suppress(ClientError):
        client.cancel(run_id)


def resumed(client: BenchClient, run_id: str) -> bool:
    with suppress(ClientError):
        return bool(client.resume(run_id))
    return False


def while_migrating(home: Path, name: str, chance: random.Random) -> None:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(home.parent, filter="data")
    with pytest.raises(AssertionError, match=failpoints.last_words(name).strip()):
        DaemonProcess(home, env=armed(name))
    hits[name] += 1
    with DaemonProcess(home) as daemon, BenchClient(daemon.address) as client:
        listed = list(client.list())
        assert len(listed) == 5
        assert not any(run.failure.reason == "STORE_CORRUPT" for run in listed)


def in_a_shared_store(home: Path, name: str, chance: random.Random, *, store: str) -> None:
    """Have one of two daemons die with a run, which the other takes over."""
    gate = home.parent / "gate"
    is_last = name == "lease.released" or name.startswith("leave")
    # It comes to some of the places at its start as well.
    count = chance.randint(2, 3) if name in ("lease.entered", "lease.renewed") else 1
    if is_last:
        gate.parent.mkdir(exist_ok=True)
        gate.touch()
    shared, lease = {"CBENCH_STORE": store}, ("--lease-seconds", "3")
    with (
        start_held(gate, 20) as system,
        DaemonProcess(home / "one", *lease, env=shared | armed(name, count)) as first,
        DaemonProcess(home / "two", *lease, env=shared) as second,
        BenchClient(first.address) as client,
        BenchClient(second.address) as other,
    ):
        spec = spec_of(other, system, ROWS)
        with suppress(ClientError):
            client.start(spec, request_id="one")
        if name.startswith("leave"):
            first.process.terminate()
        killed(first, name)
        gate.touch()
        run_id = follow(other.evaluate(spec, request_id="one")).finished.run_id
        is_exact(other, run_id, "echo", ROWS)
        assert len(list(other.list())) == 1


Scenario = Callable[[Path, str, random.Random], None]

WHERE: dict[str, Scenario] = {
    "migrate": while_migrating,
    "upload": while_uploading,
    "accept": in_a_run,
    "call": in_a_run,
    "commit": in_a_run,
    "stream": in_a_run,
    "summary": in_a_run,
    "finish": in_a_run,
    "recover": while_taking_up,
    "resume": while_taking_up,
    "cancel": while_cancelling,
    "rescore": while_rescoring,
    "delete": while_deleting,
    "intent": while_asking_another,
    "import": in_a_command("import"),
    "archive": in_a_command("archive"),
    "tokens": in_a_command("tokens"),
    "output": in_a_command("export"),
    "judge-check": in_a_command("judge check"),
    "cached-row": in_a_command("cached row"),
    "launched": in_a_command("launch"),
    "asked": in_a_command("run"),
    "prune": in_a_command("prune"),
}


IN_A_SHARED_STORE = ("lease", "leave")


@pytest.fixture
def scenario(request: pytest.FixtureRequest, name: str) -> Scenario:
    """What comes to a place, and is looked at after its death."""
    prefix = name.partition(".")[0]
    if prefix not in IN_A_SHARED_STORE:
        return WHERE[prefix]
    server = request.getfixturevalue("postgres")
    return lambda home, name, chance: in_a_shared_store(
        home, name, chance, store=server.new_store()
    )


@pytest.mark.parametrize("name", failpoints.NAMES)
def test_a_process_killed_between_two_durable_steps_harms_nothing(
    tmp_path: Path, chance: random.Random, name: str, scenario: Scenario
) -> None:
    scenario(tmp_path / "home", name, chance)


@pytest.mark.faults
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", failpoints.NAMES)
def test_it_harms_nothing_however_often_and_whenever_it_happens(
    tmp_path: Path, chance: random.Random, name: str, scenario: Scenario
) -> None:
    before = hits[name]
    for hit in range(HITS):
        scenario(tmp_path / str(hit) / "home", name, chance)
    assert hits[name] - before == HITS


def test_a_failpoint_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="not a valid failpoint"):
        failpoints.armed("commit.middle")
    assert failpoints.armed("")("commit.before") is None
