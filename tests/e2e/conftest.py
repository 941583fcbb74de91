"""A daemon and its client, for each test that asks."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cbench_client import BenchClient
from tests.fixtures.chance import chance as chance

from .processes import DaemonProcess


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[DaemonProcess]:
    with DaemonProcess(tmp_path / "home") as process:
        yield process


@pytest.fixture
def client(daemon: DaemonProcess) -> Iterator[BenchClient]:
    with BenchClient(daemon.address) as bench:
        yield bench
