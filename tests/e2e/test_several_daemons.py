"""Several addresses for one daemon: systems attach to all, clients use the first that answers."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cbench_client import Attachment, BenchClient, Refused, Unreachable
from tests.cli.conftest import complaint
from tests.e2e.following import follow
from tests.e2e.processes import DaemonProcess
from tests.fixtures import preloaded
from tests.fixtures.ports import held_port
from tests.fixtures.preloaded import CBENCH
from tests.fixtures.waiting import wait_until_listed

DATASETS = [{"name": "mini-qa", "max_examples": 3}]


class Echo:
    name = "echo"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return {**example, "response": "Paris"}


@pytest.fixture
def two(tmp_path: Path) -> Iterator[list[DaemonProcess]]:
    """Two daemons, each at a port of its own to which it may come back."""
    with (
        DaemonProcess(tmp_path / "one", port=held_port()) as one,
        DaemonProcess(tmp_path / "two", port=held_port()) as two,
    ):
        yield [one, two]


def both(daemons: list[DaemonProcess]) -> str:
    return ",".join(daemon.address for daemon in daemons)


def attached(address: str) -> int:
    """Run what is attached to one daemon, and count the rows that did not fail."""
    spec = {"systems": [{"attached": "echo"}], "datasets": DATASETS}
    with BenchClient(address) as client:
        rows = follow(client.evaluate(spec)).rows
    return len([row for row in rows if not row.HasField("failure")])


def test_a_system_is_attached_to_all_and_comes_back_to_each(two: list[DaemonProcess]) -> None:
    with Attachment(Echo(), both(two)) as attachment:
        assert attachment.wait_attached(60)
        for daemon in two:
            with BenchClient(daemon.address) as client:
                wait_until_listed(client, "echo")
            assert attached(daemon.address) == 3
        one, other = two
        one.kill()
        assert attached(other.address) == 3
        with DaemonProcess(one.home, port=int(one.address.rpartition(":")[2])) as again:
            with BenchClient(again.address) as client:
                wait_until_listed(client, "echo")
            assert attached(again.address) == 3
            assert attached(other.address) == 3


def test_a_daemon_that_is_not_there_keeps_nobody_from_the_other(two: list[DaemonProcess]) -> None:
    two[0].kill()
    with Attachment(Echo(), both(two)) as attachment:
        assert attachment.wait_attached(60)
        assert attached(two[1].address) == 3


def test_a_daemon_that_refuses_for_good_ends_the_attachment(
    two: list[DaemonProcess], tmp_path: Path
) -> None:
    (tmp_path / "tokens").write_text("secret\n")
    with DaemonProcess(tmp_path / "three", f"--token-file={tmp_path / 'tokens'}") as strict:
        attachment = Attachment(Echo(), f"{two[0].address},{strict.address}").start()
        with pytest.raises(Refused, match=strict.address):
            attachment.ended.result(60)


def started(address: str) -> str:
    spec = {"systems": [{"builtin": "identity"}], "datasets": DATASETS}
    with BenchClient(address) as client:
        return follow(client.evaluate(spec)).finished.run_id


def test_a_client_uses_the_first_that_answers_and_then_the_next(two: list[DaemonProcess]) -> None:
    # Two stores, so that it shows who answers.
    runs = [started(daemon.address) for daemon in two]
    with BenchClient(both(two)) as client:
        assert [run.run_id for run in client.list()] == [runs[0]]
        assert len(list(client.rows(runs[0]))) == 3
        two[0].kill()
        assert [run.run_id for run in client.list()] == [runs[1]]
        assert client.get(runs[1]).run_id == runs[1]
        assert b"".join(client.export(runs[1], "json"))
        assert client.gate(runs[1], ["failed_rows at most 0"]).checks
        seen = follow(client.watch(runs[1]))
        assert len(seen.rows) == 3
    with BenchClient(both(two)) as client:
        # Found at the first request, a stream or not.
        assert client.upload([{"id": 1, "context": "a"}])[1] == 1
    assert started(both(two)) != runs[1]


def test_several_are_named_in_one_text() -> None:
    listed: Any = ["127.0.0.1:1", "127.0.0.1:2"]
    with pytest.raises(TypeError, match=r"\['127.0.0.1:1', .* in one text, with commas"):
        BenchClient(listed)
    with pytest.raises(TypeError, match="in one text, with commas"):
        Attachment(Echo(), listed)


def test_when_none_answers_all_are_named() -> None:
    dead = [f"127.0.0.1:{held_port()}" for _ in range(2)]
    with BenchClient(",".join(dead)) as client, pytest.raises(Unreachable) as caught:
        client.components()
    assert dead[0] in str(caught.value)
    assert caught.value.__notes__ == [f"Nor does any daemon answer at {dead[1]}."]


def test_the_command_line_takes_several_addresses(two: list[DaemonProcess], tmp_path: Path) -> None:
    two[0].kill()
    run_id = started(two[1].address)

    def cbench(*arguments: str, **environment: str) -> Any:
        return preloaded.run(
            [str(CBENCH), *arguments],
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, **environment},
        )

    shown = cbench("runs", "--server", both(two), "--output", "json", CBENCH_HOME=str(tmp_path))
    assert shown.returncode == 0, shown.stderr
    assert run_id in shown.stdout
    ran = cbench(
        *("run", "--builtin", "identity", "--dataset", "mini-qa", "-n", "2", "--output", "json"),
        CBENCH_SERVER=both(two),
        CBENCH_HOME=str(tmp_path),
    )
    assert ran.returncode == 0, ran.stderr
    two[1].kill()
    neither = cbench("runs", "--server", both(two), CBENCH_HOME=str(tmp_path))
    assert neither.returncode == 1
    assert two[0].address in complaint(neither)
