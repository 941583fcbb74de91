"""Runs in PostgreSQL, from the command to the rows, as a user has them in a file."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cbench_client import BenchClient
from tests.e2e.following import follow
from tests.e2e.processes import DaemonProcess, examples, start_held
from tests.fixtures import preloaded
from tests.fixtures.postgres import PASSWORD, PostgresServer
from tests.fixtures.waiting import wait_until

WORDS = ("run", "--builtin", "identity", "--dataset", "mini-qa", "-n", "3")


@pytest.fixture
def store(postgres: PostgresServer) -> str:
    return postgres.new_store()


def cbench(store: str, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return preloaded.run(
        [str(preloaded.CBENCH), *words],
        env={**os.environ, "CBENCH_STORE": store, "CBENCH_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_run_is_made_shown_compared_and_deleted_by_commands_alone(
    store: str, tmp_path: Path
) -> None:
    home = tmp_path / "home"

    def done(*words: str) -> str:
        result = cbench(store, home, *words)
        assert result.returncode == 0, result.stderr
        assert PASSWORD not in result.stdout + result.stderr
        return result.stdout

    for _ in range(2):
        done(*WORDS)
    runs = json.loads(done("runs", "--output", "json"))
    first, second = (run["run_id"] for run in runs)
    shown = json.loads(done("show", first, "--output", "json"))
    assert PASSWORD not in json.dumps(shown)
    assert "identity" in done("show", first)
    assert "identity" in done("compare", first, second)
    file = tmp_path / "first.run"
    done("export", first, "--format", "run", "-o", str(file))
    assert PASSWORD.encode() not in file.read_bytes()
    done("runs", "pin", first)
    done("runs", "prune", "--keep", "0")
    assert [run["run_id"] for run in json.loads(done("runs", "--output", "json"))] == [first]
    done("runs", "delete", first)
    assert json.loads(done("runs", "--output", "json")) == []
    done("import", str(file))
    assert [run["run_id"] for run in json.loads(done("runs", "--output", "json"))] == [first]
    # No file of a store was made beside it.
    assert not (home / "cbench.db").exists()


@pytest.mark.parametrize("how", ["killed", "ended"])
def test_a_run_is_taken_over_from_a_daemon_that_is_gone(
    store: str, tmp_path: Path, how: str
) -> None:
    gate = tmp_path / "gate"
    spec: dict[str, Any] = {
        "systems": [{"name": "echo", "target": ""}],
        "datasets": [{"name": "sent", "upload": ""}],
        "timed_rows": 0,
        "asked_again": 0,
    }
    flags = ("--lease-seconds", "3")
    env = {"CBENCH_STORE": store}
    with (
        start_held(gate) as system,
        DaemonProcess(tmp_path / "one", *flags, env=env) as first,
        DaemonProcess(tmp_path / "two", *flags, env=env) as second,
        BenchClient(first.address) as client,
        BenchClient(second.address) as other,
    ):
        spec["systems"][0]["target"] = system.address
        spec["datasets"][0]["upload"] = client.upload(examples(60))[0]
        run_id = client.start(spec)
        # Each daemon answers for the runs of the other.
        wait_until(lambda: other.get(run_id).progress.completed_rows >= 3)
        if how == "killed":
            first.kill()
            gate.touch()
        else:
            gate.touch()
            assert first.terminate() == 0
        followed = follow(other.watch(run_id))
    assert followed.state == "SUCCEEDED"
    assert sorted(followed.keys) == [("echo", ordinal, 0) for ordinal in range(60)]
    assert PASSWORD not in "".join(first.errors + second.errors)


def test_a_store_that_cannot_be_opened_is_named_without_its_password(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    good = postgres.address()
    for store, said in (
        (good.replace("/postgres", "/nowhere"), "has no database of that name"),
        (good.replace("cbench:", "cbench:x"), "Check the user, the password"),
        ("postgresql://cbench:50%of it@127.0.0.1/x", "with %XX for special characters"),
        ("mysql://cbench:secret@127.0.0.1/x", "must begin with postgresql://"),
        (f"postgresql://cbench:secret@127.0.0.1:{1}/x", "cannot be reached"),
    ):
        result = cbench(store, tmp_path / "home", "runs")
        assert result.returncode != 0
        assert said in result.stderr, result.stderr
        for secret in (PASSWORD, "50%of", "secret", "%25for"):
            assert secret not in result.stderr
