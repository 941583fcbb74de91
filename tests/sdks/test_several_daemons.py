"""Several addresses for one daemon, `host:a,host:b`, as every SDK takes them.

Python's are in tests/e2e/test_several_daemons.py.
"""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cbench_client import BenchClient
from tests.e2e.following import follow
from tests.e2e.processes import DaemonProcess
from tests.fixtures.ports import held_port
from tests.fixtures.sdks import COMPILED, Sdk, built, run
from tests.fixtures.waiting import wait_until_listed

each_compiled = pytest.mark.parametrize("sdk", COMPILED, ids=lambda sdk: sdk.name)


@contextmanager
def two_daemons(home: Path) -> Iterator[tuple[DaemonProcess, DaemonProcess]]:
    with (
        DaemonProcess(home / "one", port=held_port()) as one,
        DaemonProcess(home / "two", port=held_port()) as two,
    ):
        yield one, two


def takes_part(sdk: Sdk, address: str) -> None:
    """Wait until what the SDK attaches is attached to a daemon, and run it there."""
    spec = {
        "systems": [{"attached": sdk.attached}],
        "datasets": [{"name": "mini-qa", "max_examples": 3}],
    }
    with BenchClient(address) as client:
        wait_until_listed(client, sdk.attached)
        rows = follow(client.evaluate(spec)).rows
    assert [row.HasField("failure") for row in rows] == [False] * 3


@each_compiled
def test_it_attaches_to_all_of_them_and_comes_back_to_each(sdk: Sdk, tmp_path: Path) -> None:
    example, *flags = sdk.attach
    with two_daemons(tmp_path) as (one, two):
        addresses = f"{one.address},{two.address}"
        process = subprocess.Popen(built(sdk).command(example, *flags, addresses))
        try:
            takes_part(sdk, one.address)
            takes_part(sdk, two.address)
            one.kill()
            takes_part(sdk, two.address)
            with DaemonProcess(one.home, port=int(one.address.rpartition(":")[2])) as again:
                takes_part(sdk, again.address)
                process.send_signal(signal.SIGTERM)
                assert process.wait(60) == 0
        finally:
            process.kill()
            process.wait(60)


@each_compiled
def test_it_drives_the_first_that_answers(sdk: Sdk, tmp_path: Path) -> None:
    example, *flags = sdk.drive
    with two_daemons(tmp_path) as (one, two):
        addresses = f"{one.address},{two.address}"
        printed = run(*built(sdk).command(example, *flags, addresses))
        assert all(text in printed for text in sdk.driven)
        for daemon, count in ((one, 1), (two, 0)):
            with BenchClient(daemon.address) as client:
                assert len(list(client.list())) == count
        one.kill()
        printed = run(*sdk.command(example, *flags, addresses))
        assert all(text in printed for text in sdk.driven)
        with BenchClient(two.address) as client:
            assert len(list(client.list())) == 1
