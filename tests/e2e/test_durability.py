"""A run survives the death of its daemon, its system and its client."""

import random
import signal
import threading
from collections import Counter
from pathlib import Path

import pytest

from cbench_client import BenchClient
from cbench_server.daemon.embedded import embedded
from tests.fixtures.ports import held_port

from .following import Followed, follow
from .processes import (
    DaemonProcess,
    Process,
    examples,
    rows_stored,
    start_held,
    start_system,
    wait_until,
)

# Calls in flight, and those answered but not yet stored: few for a system that charges, else
# as many as it can answer in 25 ms, which are 80 for sixteen calls of 5 ms.
WINDOWS = {"charges": 16 + 8, "echo": 16 + 80}


def _spec(client: BenchClient, system: Process, count: int) -> dict[str, object]:
    digest, _ = client.upload(examples(count))
    return {
        "systems": [{"target": system.address}],
        "datasets": [{"name": "given", "upload": digest}],
        "asked_again": 0,
    }


@pytest.mark.slow
@pytest.mark.parametrize("behaviour", WINDOWS)
def test_a_daemon_killed_at_random_moments_loses_and_repeats_no_row(
    tmp_path: Path, chance: random.Random, behaviour: str
) -> None:
    rows, kills = 900, 5
    port, log = held_port(), tmp_path / "calls"
    daemon = DaemonProcess(tmp_path / "home", port=port)
    with (
        start_system(behaviour, str(log), "0.005") as system,
        BenchClient(daemon.address) as client,
    ):
        events = client.evaluate(_spec(client, system, rows))
        seen = Followed()
        watcher = threading.Thread(target=lambda: [seen.take(event) for event in events])
        watcher.start()
        try:
            for _ in range(kills):
                wait_until(lambda: seen.rows)
                # A life in which nothing was stored would count against the run.
                goal = rows_stored(daemon) + chance.randrange(20, 120)
                wait_until(lambda goal=goal: len(seen.rows) >= goal or seen.finished)
                daemon.kill()
                daemon = DaemonProcess(tmp_path / "home", port=port)
            watcher.join(60)
            assert not watcher.is_alive()
            stored = [row.ordinal for row in client.rows(seen.finished.run_id)]
        finally:
            daemon.kill()
    assert seen.state == "SUCCEEDED"
    assert stored == list(range(rows))
    assert sorted(seen.keys) == [(behaviour, ordinal, 0) for ordinal in range(rows)]
    assert len(log.read_text().split()) - rows <= kills * WINDOWS[behaviour]


def test_a_system_killed_and_restarted_ten_times_costs_no_row(
    client: BenchClient, tmp_path: Path
) -> None:
    rows, kills, port, log = 1100, 10, held_port(), tmp_path / "calls"
    system = start_system("echo", str(log), "0.005", port=port)
    try:
        run_id = client.start(_spec(client, system, rows))
        for kill in range(kills):
            goal = 100 * (kill + 1)
            wait_until(lambda goal=goal: client.get(run_id).progress.completed_rows >= goal)
            system.kill()
            system = start_system("echo", str(log), "0.005", port=port)
        seen = follow(client.watch(run_id))
    finally:
        system.kill()
    assert seen.state == "SUCCEEDED"
    assert seen.failures == {}
    assert sorted(seen.keys) == [("echo", ordinal, 0) for ordinal in range(rows)]
    calls = Counter(log.read_text().split())
    assert sum(calls.values()) - rows <= kills * 16


def test_a_run_whose_system_is_gone_waits_says_why_and_goes_on(
    client: BenchClient, tmp_path: Path
) -> None:
    port = held_port()
    with start_held(tmp_path / "gate", 60, port=port) as system:
        run_id = client.start(_spec(client, system, 300))
        wait_until(lambda: client.get(run_id).progress.completed_rows >= 50)
    waiting = wait_until(lambda: (run := client.get(run_id)).state == 6 and run)
    assert 'system "echo" is away' in waiting.waiting_reason
    with start_system("echo", port=port):
        seen = follow(client.watch(run_id))
    assert seen.states == ["RUNNING", "WAITING", "RUNNING"]
    assert (seen.state, len(seen.rows), seen.failures) == ("SUCCEEDED", 300, {})


def test_a_row_that_takes_its_system_down_twice_is_failed_and_no_other(
    client: BenchClient,
) -> None:
    port = held_port()
    with start_system("poison", port=port) as first:
        run_id = client.start(_spec(client, first, 40))
        first.process.wait(60)
    wait_until(lambda: client.get(run_id).state == 6)
    with start_system("poison", port=port) as second:
        second.process.wait(60)
    wait_until(lambda: client.get(run_id).state == 6)
    with start_system("poison", port=port):
        seen = follow(client.watch(run_id))
    assert (seen.state, seen.failures, len(seen.rows)) == ("SUCCEEDED", {"e5": "UNAVAILABLE"}, 40)
    failed = next(client.rows(run_id, failed_only=True))
    assert "the system died twice with this row" in failed.failure.message
    assert failed.failure.attempts == 2


def test_a_system_that_stays_away_fails_the_run_which_can_be_resumed(
    client: BenchClient, tmp_path: Path
) -> None:
    port = held_port()
    with start_held(tmp_path / "gate", 60, port=port) as system:
        spec = {**_spec(client, system, 300), "wait_timeout": 2.0}
        run_id = client.start(spec)
        wait_until(lambda: client.get(run_id).progress.completed_rows >= 50)
    failed = wait_until(lambda: (run := client.get(run_id)).state == 4 and run)
    assert (failed.failure.reason, failed.failure.field) == ("SYSTEM_GONE", "spec.systems[0]")
    assert failed.progress.completed_rows >= 50
    with start_system("echo", port=port):
        client.resume(run_id)
        seen = follow(client.watch(run_id))
    assert sorted(seen.keys) == [("echo", ordinal, 0) for ordinal in range(300)]


def test_a_system_that_stays_away_while_no_row_is_in_flight_fails_the_run_with_what_is_known(
    client: BenchClient,
) -> None:
    """Its only call has failed for good, so that nothing waits for it but the run itself."""
    port, told = held_port(), "poison ended with exit code 9. Its last lines: no more"
    with start_system("poison", port=port) as first:
        run_id = client.start({**_spec(client, first, 40), "wait_timeout": 12.0})
        first.process.wait(60)
    wait_until(lambda: client.get(run_id).state == 6)
    with start_system("poison", port=port) as second:
        second.process.wait(60)
    # Before the run has seen that it is away, and after.
    for reason in ("too early to tell", told):
        assert client.explain_wait(run_id, reason).state != 4
        waiting = wait_until(
            lambda reason=reason: (
                (run := client.get(run_id)).waiting_reason.endswith(reason) and run
            )
        )
    assert waiting.state == 6
    assert 'system "poison" is away: ' in waiting.waiting_reason
    assert [(note.code, note.text) for note in waiting.notes] == [("SYSTEM_ENDED", told)]
    failed = wait_until(lambda: (run := client.get(run_id)).state == 4 and run)
    assert (failed.failure.reason, failed.failure.field) == ("SYSTEM_GONE", "spec.systems[0]")
    assert failed.failure.message.endswith(told)
    assert told in [note.text for note in failed.notes]
    # Nothing is resumed by it, and what is over is left as it is.
    late = client.explain_wait(run_id, "much too late")
    assert (late.state, late.notes) == (failed.state, failed.notes)


def test_sigterm_hands_the_run_back_and_a_new_daemon_takes_it_up(tmp_path: Path) -> None:
    port, log = held_port(), tmp_path / "calls"
    with start_system("echo", str(log), "0.02") as system:
        with DaemonProcess(tmp_path / "home", port=port) as daemon:
            client = BenchClient(daemon.address)
            run_id = client.start(_spec(client, system, 300))
            wait_until(lambda: client.get(run_id).progress.completed_rows >= 50)
            assert daemon.terminate() == 0
        with DaemonProcess(tmp_path / "home", port=port):
            seen = follow(client.watch(run_id))
    assert sorted(seen.keys) == [("echo", ordinal, 0) for ordinal in range(300)]
    # A drained daemon finished what was in flight, so nothing was asked twice.
    assert len(log.read_text().split()) == 300


def test_a_second_signal_ends_the_daemon_at_once(tmp_path: Path) -> None:
    with start_system("unreliable") as system, DaemonProcess(tmp_path / "home") as daemon:
        client = BenchClient(daemon.address)
        # Its eighth row never ends.
        run_id = client.start({**_spec(client, system, 60), "timed_rows": 0})
        wait_until(lambda: client.get(run_id).progress.completed_rows >= 7)
        daemon.process.send_signal(signal.SIGTERM)
        wait_until(lambda: any("draining" in line for line in daemon.errors))
        assert daemon.terminate() == 128 + signal.SIGTERM


def test_an_embedded_run_and_a_daemon_share_a_store_without_touching_each_other(
    daemon: DaemonProcess, client: BenchClient
) -> None:
    with start_system("echo", "", "0.005") as system:
        on_daemon = client.start(_spec(client, system, 400))
        with embedded(home=str(daemon.home)) as target, BenchClient(target) as inside:
            wait_until(lambda: client.get(on_daemon).progress.completed_rows >= 20)
            seen_inside = follow(inside.evaluate(_spec(inside, system, 400)))
            # The embedded one sees the daemon's run, but leaves it alone.
            assert inside.get(on_daemon).run_id == on_daemon
        seen = follow(client.watch(on_daemon))
    for each in (seen, seen_inside):
        assert each.state == "SUCCEEDED"
        assert sorted(each.keys) == [("echo", ordinal, 0) for ordinal in range(400)]


def test_a_run_in_another_process_can_be_watched_and_cancelled(
    daemon: DaemonProcess, client: BenchClient, tmp_path: Path
) -> None:
    with start_held(tmp_path / "gate", 40) as system:
        run_id = client.start(_spec(client, system, 2000))
        with embedded(home=str(daemon.home)) as target, BenchClient(target) as inside:
            wait_until(lambda: inside.get(run_id).progress.completed_rows >= 20)
            inside.cancel(run_id)
            seen = follow(inside.watch(run_id))
    assert seen.state == "CANCELLED"
    assert 20 <= len(seen.rows) < 2000


def test_a_slow_watcher_sees_everything_and_holds_up_nobody(client: BenchClient) -> None:
    with start_system("echo") as system:
        run_id = client.start(_spec(client, system, 500))
        watcher = client.watch(run_id)
        seen = Followed()
        seen.take(next(watcher))
        wait_until(lambda: client.get(run_id).state == 3)
        for event in watcher:
            seen.take(event)
    assert len(seen.rows) == 500
