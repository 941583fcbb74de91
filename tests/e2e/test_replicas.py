"""Replicas of a system: processes that are killed, hang, lag, fail or change; every row is made."""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from cbench_client import BenchClient, Refused
from tests.fixtures import preloaded
from tests.fixtures.ports import held_port
from tests.fixtures.preloaded import CBENCH

from .following import Followed
from .processes import DaemonProcess, Process, examples, wait_until

REPLICA = str(Path(__file__).with_name("replica.py"))


def start_replica(version: str = "1", control: Path | str = "", where: str | int = 0) -> Process:
    environment = {"CBENCH_HANDSHAKE": "1"}
    return Process([sys.executable, REPLICA, str(where), version, str(control)], environment)


@contextmanager
def replicas(*arguments: dict[str, Any]) -> Iterator[list[Process]]:
    with ExitStack() as stack:
        yield [stack.enter_context(start_replica(**each)) for each in arguments]


class Seen(Followed):
    """What was seen of a run, with what it said of its replicas."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def take(self, event: Any) -> None:
        super().take(event)
        if event.HasField("state_change"):
            self.said.append(event.state_change.reason)

    def has_said(self, *words: str) -> bool:
        return any(all(word in text for word in words) for text in self.said)


def spec_of(processes: list[Process], **more: Any) -> dict[str, Any]:
    addresses = [process.address for process in processes]
    system = {"target": addresses[0], "replicas": addresses[1:]}
    return {"systems": [system], "asked_again": 0, "timed_rows": 3, **more}


def run(
    client: BenchClient,
    spec: dict[str, Any],
    count: int,
    during: Callable[[Seen], None] = lambda _: None,
) -> Seen:
    """Run to the end; `during` is called after every event."""
    digest, _ = client.upload(examples(count))
    seen = Seen()
    spec = {"datasets": [{"name": "given", "upload": digest}], **spec}
    for event in client.evaluate(spec, include_rows=True):
        seen.take(event)
        during(seen)
    return seen


def once(rows: int, act: Callable[[], object]) -> Callable[[Seen], None]:
    """Do something once so many rows are there."""
    done: list[bool] = []

    def during(seen: Seen) -> None:
        if len(seen.rows) >= rows and not done:
            done.append(True)
            act()

    return during


def check_exact(seen: Seen, count: int) -> None:
    assert seen.state == "SUCCEEDED"
    assert sorted(seen.keys) == [("worker", ordinal, 0) for ordinal in range(count)]
    assert seen.failures == {}


def test_replicas_share_the_calls_and_rows_say_which_answered(client: BenchClient) -> None:
    with replicas({}, {}, {}) as processes:
        seen = run(client, spec_of(processes), 60)
        check_exact(seen, 60)
        answered = Counter(row.replica for row in seen.rows)
        assert set(answered) == {process.address for process in processes}
        pids = {process.address: process.pid for process in processes}
        stored = list(client.rows(seen.finished.run_id, include_processed=True))
    assert all(row.processed["pid"].int_value == pids[row.replica] for row in stored)
    alone = Counter(row.replica for row in seen.rows if row.alone)
    assert sorted(alone.values()) == [3, 3, 3]


def test_the_calls_of_a_replica_that_is_killed_are_taken_by_the_others(
    client: BenchClient,
) -> None:
    with replicas({}, {}, {}) as processes:
        seen = run(client, spec_of(processes), 90, once(30, processes[1].kill))
        gone = processes[1].address
    check_exact(seen, 90)
    assert seen.has_said(gone, "is away", "Its calls go to 2 others")
    assert seen.rows[-1].replica != gone


def test_a_replica_that_hangs_is_left_out_and_its_call_made_again(
    client: BenchClient, tmp_path: Path
) -> None:
    control = tmp_path / "control"
    with replicas({}, {"control": control}, {}) as processes:
        spec = spec_of(processes, row_timeout=5.0)
        seen = run(client, spec, 120, once(30, lambda: control.write_text("hang")))
        hung = processes[1].address
    check_exact(seen, 120)
    assert seen.has_said(hung, "is left out")


def test_a_replica_that_lags_is_left_out_for_a_while(client: BenchClient, tmp_path: Path) -> None:
    control = tmp_path / "control"
    with replicas({}, {"control": control}, {}) as processes:
        lagging = processes[1].address

        def during(seen: Seen) -> None:
            if seen.has_said(lagging, "is left out"):
                control.unlink(missing_ok=True)
            elif len(seen.rows) >= 30:
                control.write_text("slow")

        seen = run(client, spec_of(processes), 400, during)
    check_exact(seen, 400)
    assert seen.has_said(lagging, "is left out for 5s: it takes", "and others take")


def test_a_replica_that_fails_what_others_answer_costs_no_row(
    client: BenchClient, tmp_path: Path
) -> None:
    control = tmp_path / "control"
    with replicas({}, {"control": control}) as processes:
        seen = run(client, spec_of(processes), 60, once(20, lambda: control.write_text("fail")))
        failing = processes[1].address
    check_exact(seen, 60)
    assert seen.has_said(failing, "it fails calls that others answer")
    assert max(row.attempts for row in seen.rows) == 2


def test_replicas_of_several_versions_are_refused_by_both(client: BenchClient) -> None:
    with replicas({}, {"version": "2"}) as processes, pytest.raises(Refused) as refused:
        run(client, spec_of(processes), 5)
    one, other = (process.address for process in processes)
    assert f'{one} has version "1", {other} has version "2"' in str(refused.value)


def test_a_replica_that_comes_back_with_another_version_is_left_out(client: BenchClient) -> None:
    port = held_port()
    with ExitStack() as stack:
        first = stack.enter_context(start_replica())
        second = stack.enter_context(start_replica(where=port))

        def change() -> None:
            second.kill()
            stack.enter_context(start_replica("2", where=port))

        digest, _ = client.upload(examples(2000))
        spec = spec_of([first, second], datasets=[{"name": "given", "upload": digest}])
        seen, act = Seen(), once(20, change)
        for event in client.evaluate(spec, include_rows=True):
            seen.take(event)
            act(seen)
            told = seen.has_said(second.address, "is left out", 'with version "2"', 'with "1"')
            if told and seen.finished is None:
                client.cancel(next(iter(client.list())).run_id)
    assert told
    # Nothing that the other version would have answered is a row.
    assert [row for row in seen.rows if row.HasField("failure")] == []


def test_a_run_waits_only_while_all_replicas_are_away(client: BenchClient) -> None:
    ports = [held_port(), held_port()]
    with ExitStack() as stack:
        processes = [stack.enter_context(start_replica(where=port)) for port in ports]

        def kill_all() -> None:
            for process in processes:
                process.kill()

        kill, back = once(20, kill_all), []

        def during(seen: Seen) -> None:
            kill(seen)
            if "WAITING" in seen.states and not back:
                back.append(stack.enter_context(start_replica(where=ports[0])))

        seen = run(client, spec_of(processes), 60, during)
    check_exact(seen, 60)
    assert "WAITING" in seen.states
    assert seen.states[-1] == "RUNNING"


def test_processes_attached_under_one_name_are_replicas(
    client: BenchClient, daemon: DaemonProcess
) -> None:
    command = [sys.executable, REPLICA, f"attach:{daemon.address}"]
    first = preloaded.Popen([*command, "1"])
    second = preloaded.Popen([*command, "1"])
    try:
        wait_until(lambda: "attached, 2 replicas" in _locations(client), 60)
        spec = {"systems": [{"attached": "worker"}], "asked_again": 0, "timed_rows": 3}
        seen = run(client, spec, 60, once(30, second.kill))
        check_exact(seen, 60)
        assert len({row.replica for row in seen.rows}) == 2
        assert seen.has_said("has left") or seen.has_said("is away")
        other = preloaded.run([*command, "2"], capture_output=True, text=True, timeout=120)
        assert 'has version "1", not "2"' in other.stderr
    finally:
        for process in (first, second):
            process.kill()
            process.wait()


def _locations(client: BenchClient) -> list[str]:
    return [each.location for each in client.components().systems]


def test_launched_replicas_share_the_calls(tmp_path: Path) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text("".join(f"{json.dumps(each)}\n" for each in examples(40)))
    launch = f"{sys.executable} {REPLICA} 0 1"
    flags = ["--launch", launch, "--replicas", "2", "--name", "mine", "--dataset", str(data)]
    done = preloaded.run(
        [CBENCH, "run", *flags, "--timed-rows", "3", "--output", "jsonl"],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rows) == 40
    assert len({row["replica"] for row in rows}) == 2


def test_addresses_with_commas_name_replicas_of_one_system(tmp_path: Path) -> None:
    with replicas({}, {}) as processes:
        served = f"mine={processes[0].address},{processes[1].address}"
        done = preloaded.run(
            [CBENCH, "run", "--system", served, "--dataset", "mini-qa", "--timed-rows", "3"],
            capture_output=True,
            text=True,
            timeout=300,
            cwd=tmp_path,
        )
    assert done.returncode == 0, done.stderr
    assert "2 replicas of mine" in done.stdout
