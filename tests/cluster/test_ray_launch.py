"""Systems launched on a real Ray cluster, by the CLI."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.clusters import BIN, NEEDS_RAY, Cluster
from tests.fixtures.waiting import wait_until

pytestmark = NEEDS_RAY

# Says where and as which process it runs, and what it knows of the cluster.
SYSTEM = """
import os, sys, time
from pathlib import Path
from cbench_client import serve

class Where:
    name = "where"
    version = "1"
    max_concurrency = 1

    def process(self, example):
        time.sleep(float(os.environ.get("PAUSE", "0.02")))
        with open("answered", "a") as file:
            file.write(".")
        return {**example, "response": "a"}

Path("pids").mkdir(exist_ok=True)
secrets = [name for name in os.environ if name.startswith("RAY_")]
Path("pids", str(os.getpid())).write_text(" ".join(secrets))
print("getting ready", file=sys.stderr, flush=True)
while Path("closed").exists():
    time.sleep(0.05)
serve(Where(), "127.0.0.1:0")
"""


def start(
    cluster: Cluster, folder: Path, count: int, *flags: str, pause: str = "0.02"
) -> "subprocess.Popen[str]":
    (folder / "system.py").write_text(SYSTEM)
    examples = [{"id": n, "context": "c", "question": "q", "answer": "a"} for n in range(count)]
    (folder / "e.jsonl").write_text("".join(json.dumps(each) + "\n" for each in examples))
    launch = f"env PAUSE={pause} {BIN / 'python'} system.py"
    words = ["run", "--engine", "ray", "--ray-address", cluster.address, "--launch", launch]
    return subprocess.Popen(
        [BIN / "cbench", *words, "--dataset", "e.jsonl", "--output", "json", *flags],
        cwd=folder,
        env={**cluster.environment, "CBENCH_HOME": str(folder / "home")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(program: "subprocess.Popen[str]") -> tuple[list[dict[str, Any]], str]:
    output, complaints = program.communicate(timeout=400)
    assert program.returncode == 0, complaints
    return json.loads(output)["rows"], complaints


def pids(folder: Path) -> list[int]:
    return [int(path.name) for path in (folder / "pids").glob("*")]


def is_alive(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def test_replicas_run_on_the_nodes_and_end_with_the_run(cluster: Cluster, tmp_path: Path) -> None:
    for _ in range(2):
        cluster.add(cpus=1, sandboxes=0)
    lacking = start(cluster, tmp_path, 1, "--resources", "GPU=1")
    _, complaints = lacking.communicate(timeout=300)
    assert lacking.returncode == 1
    assert "no node of the Ray cluster offers GPU=1; the most that one has is GPU=0" in complaints
    rows, complaints = finished(start(cluster, tmp_path, 40, "--replicas", "2"))
    assert [row["scores"]["exact_match"] for row in rows] == [1.0] * 40
    # Both nodes have room for one, and neither shows it the token of the cluster.
    assert len({row["replica"] for row in rows}) == len(pids(tmp_path)) == 2
    assert [path.read_text() for path in (tmp_path / "pids").glob("*")] == ["", ""]
    assert "getting ready" in complaints
    wait_until(lambda: not any(map(is_alive, pids(tmp_path))), 60)


@pytest.mark.faults
def test_a_lost_node_or_program_costs_no_row(cluster: Cluster, tmp_path: Path) -> None:
    nodes = [cluster.add(cpus=1, sandboxes=0) for _ in range(3)]
    (tmp_path / "closed").touch()
    program = start(cluster, tmp_path, 120, "--replicas", "2", pause="0.3")

    def one_more(count: int) -> None:
        wait_until(lambda: len(pids(tmp_path)) == count or program.poll() is not None, 300)
        assert program.poll() is None, program.communicate()

    def some_are_answered() -> None:
        # All that were in flight at one death: whatever is so at two deaths is failed.
        answered = tmp_path / "answered"
        goal = (answered.stat().st_size if answered.exists() else 0) + 10
        wait_until(lambda: answered.exists() and answered.stat().st_size >= goal, 300)

    one_more(2)
    # Once before it serves, and once while it does.
    os.kill(pids(tmp_path)[0], signal.SIGKILL)
    one_more(3)
    (tmp_path / "closed").unlink()
    some_are_answered()
    os.kill(next(filter(is_alive, pids(tmp_path))), signal.SIGKILL)
    one_more(4)
    for node in nodes[:2]:
        some_are_answered()
        cluster.kill(node)
    rows, complaints = finished(program)
    assert sorted(int(row["example_id"]) for row in rows) == list(range(120))
    assert [row["failure"] for row in rows if row.get("failure")] == []
    assert [row["scores"]["exact_match"] for row in rows] == [1.0] * 120
    assert "before it said where it listens; it is started again" in complaints
    assert "exit code 137; it is started again" in complaints
    wait_until(lambda: not any(map(is_alive, pids(tmp_path))), 60)
