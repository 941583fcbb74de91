"""Scoring on a real Ray cluster of several nodes, through a daemon and the CLI."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cbench_client import BenchClient
from tests.cluster.clusters import BIN, NEEDS_RAY, Cluster
from tests.fixtures import preloaded
from tests.fixtures.ports import held_port
from tests.fixtures.waiting import wait_until

pytestmark = NEEDS_RAY


class Daemon:
    """A daemon that scores on the cluster."""

    def __init__(self, cluster: Cluster, folder: Path, *flags: str) -> None:
        self.log = folder / "daemon.log"
        command = [BIN / "cbench-server", "--home", folder / "home", "--address", "127.0.0.1:0"]
        command += ["--engine", "ray", "--ray-address", cluster.address, *flags]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, text=True, env=cluster.environment
            )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().split("|")[3]

    def wait_for_seats(self, seats: int) -> None:
        """Wait until so many scorers are there, or more."""

        def are_there() -> bool:
            said = [json.loads(line) for line in self.log.read_text().splitlines()]
            return any(line.get("seats", 0) >= seats for line in said)

        wait_until(are_there, 120)

    def close(self) -> None:
        """End it, in good order."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(60) == 0
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def daemon(cluster: Cluster, tmp_path: Path) -> Iterator[Daemon]:
    found = Daemon(cluster, tmp_path)
    yield found
    found.close()


def write_programs(folder: Path, count: int, seconds: float) -> list[str]:
    """Write examples and answers of which every third is wrong; return the words of the command."""
    examples, answers = [], []
    for number in range(count):
        test = f"assert double({number}) == {2 * number}"
        examples.append({"id": number, "context": "Double it.", "test_list": [test]})
        factor = 3 if number % 3 == 0 and number else 2
        program = f"import time\ndef double(n):\n    time.sleep({seconds})\n    return n * {factor}"
        answers.append({"id": number, "response": program})
    for name, lines in (("examples", examples), ("answers", answers)):
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"{name}.jsonl").write_text(text)
    return [
        "run",
        "--dataset",
        str(folder / "examples.jsonl"),
        "--predictions",
        str(folder / "answers.jsonl"),
        "--evaluator",
        "code-execution",
    ]


def start_cbench(folder: Path, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [str(preloaded.CBENCH), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "CBENCH_HOME": str(folder / "home")},
    )


def expected(count: int) -> list[float]:
    return [0.0 if number % 3 == 0 and number else 1.0 for number in range(count)]


def passed(run: dict[str, Any]) -> list[float]:
    """Return the score of each row in the order of the examples; each is there once."""
    rows = {int(row["example_id"]): row["scores"]["pass_at_1"] for row in run["rows"]}
    assert len(rows) == len(run["rows"])
    return [rows[number] for number in sorted(rows)]


def finished(program: "subprocess.Popen[str]") -> dict[str, Any]:
    output, complaints = program.communicate(timeout=300)
    assert program.returncode == 0, complaints
    run: dict[str, Any] = json.loads(output)
    return run


def wait_for_rows(client: BenchClient, rows: int) -> None:
    """Wait until the only run has so many."""
    wait_until(lambda: [run for run in client.list() if run.progress.completed_rows >= rows], 120)


def run_and_lose(daemon: Daemon, folder: Path, lose: Callable[[], None]) -> dict[str, Any]:
    """Lose something in the middle of a run, of which no row is lost; return the run."""
    command = write_programs(folder, 40, 0.3)
    program = start_cbench(folder, *command, "--output", "json", "--server", daemon.address)
    with BenchClient(daemon.address) as client:
        wait_for_rows(client, 6)
        lose()
    run = finished(program)
    assert passed(run) == expected(40)
    assert run["failed_rows"] == 0
    return run


def test_programs_wait_for_a_node_that_locks_them_in(
    cluster: Cluster, daemon: Daemon, tmp_path: Path
) -> None:
    cluster.add(cpus=1, sandboxes=0)
    daemon.wait_for_seats(1)
    command = [*write_programs(tmp_path, 12, 0.0), "--output", "json"]
    program = start_cbench(tmp_path, *command, "--server", daemon.address)
    with BenchClient(daemon.address) as client:
        reasons = wait_until(
            lambda: [run.waiting_reason for run in client.list() if run.waiting_reason], 120
        )
        assert "no node of the Ray cluster offers cbench_sandbox" in reasons[0]
        assert "cbench doctor --node" in reasons[0]
    cluster.add(cpus=1, sandboxes=1)
    there = finished(program)
    here = finished(start_cbench(tmp_path, *command))
    assert passed(here) == passed(there) == expected(12)


@pytest.mark.faults
def test_a_lost_node_costs_a_batch_again_and_no_row(
    cluster: Cluster, daemon: Daemon, tmp_path: Path
) -> None:
    lost = cluster.add(cpus=2, sandboxes=2)
    cluster.add(cpus=1, sandboxes=1)
    daemon.wait_for_seats(3)
    run = run_and_lose(daemon, tmp_path, lambda: cluster.kill(lost))
    [note] = [note["text"] for note in run["notes"] if note["code"] == "SCORED_AGAIN"]
    assert "a node or a scorer of the Ray cluster was lost" in note


@pytest.mark.faults
def test_a_lost_scorer_is_made_again(cluster: Cluster, daemon: Daemon, tmp_path: Path) -> None:
    cluster.add(cpus=1, sandboxes=1)
    daemon.wait_for_seats(1)

    def kill_scorers() -> None:
        for scorer in cluster.scorers():
            os.kill(scorer, signal.SIGKILL)

    run = run_and_lose(daemon, tmp_path, kill_scorers)
    assert [note for note in run["notes"] if note["code"] == "SCORED_AGAIN"]


@pytest.mark.faults
def test_a_run_outlives_its_cluster(tmp_path: Path) -> None:
    port = held_port()
    first = Cluster(tmp_path / "1", port)
    daemon = Daemon(first, tmp_path)
    try:
        first.add(cpus=1, sandboxes=1)
        daemon.wait_for_seats(1)
        command = write_programs(tmp_path, 30, 0.3)
        program = start_cbench(tmp_path, *command, "--output", "json", "--server", daemon.address)
        with BenchClient(daemon.address) as client:
            wait_for_rows(client, 3)
            first.kill_all()
            wait_until(lambda: [run for run in client.list() if run.waiting_reason], 120)
        second = Cluster(tmp_path / "2", port, first.environment["RAY_AUTH_TOKEN"])
        try:
            second.add(cpus=1, sandboxes=1)
            run = finished(program)
            assert passed(run) == expected(30)
            assert run["failed_rows"] == 0
        finally:
            second.close()
    finally:
        daemon.close()
