"""A process that is stopped is told from one that is slow, without pings."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cbench_client.errors import RemoteFailure
from cbench_client.remote import pulse, unary
from cbench_client.remote.connection import SystemConnection
from tests.e2e.processes import Process

SYSTEMS = Path(__file__).parents[4] / "tests" / "e2e" / "systems.py"
EXAMPLE = {"id": "e0", "question": "q"}


@pytest.fixture
def slow() -> AsyncIterator[Process]:
    """A system that never answers."""
    with Process([sys.executable, str(SYSTEMS), "echo", "0", "", "3600"]) as process:
        yield process
        os.kill(process.pid, signal.SIGCONT)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulse, "SILENCE_SECONDS", 0.2)
    monkeypatch.setattr(pulse, "PATIENCE_SECONDS", 0.5)


@pytest.mark.parametrize("alone", [False, True], ids=["stream", "unary"])
async def test_calls_to_a_stopped_process_are_lost_long_before_their_deadline(
    slow: Process, alone: bool
) -> None:
    connection = SystemConnection(slow.address)
    await connection.describe()
    os.kill(slow.pid, signal.SIGSTOP)
    with pytest.raises(RemoteFailure, match=r"no new connection|broken off") as caught:
        await connection.process("echo", EXAMPLE, call_id="1", timeout=60, alone=alone)
    assert (caught.value.origin, caught.value.retryable) == ("transport", True)
    assert not await connection.wait_connected(0.2)
    os.kill(slow.pid, signal.SIGCONT)
    assert await connection.wait_connected(60)
    await connection.close()


@pytest.mark.parametrize("alone", [False, True], ids=["stream", "unary"])
async def test_a_deadline_says_whether_anybody_was_there(slow: Process, alone: bool) -> None:
    connection = SystemConnection(slow.address)
    await connection.describe()

    async def reason_of(call_id: str) -> str:
        with pytest.raises(RemoteFailure) as caught:
            await connection.process("echo", EXAMPLE, call_id=call_id, timeout=0.1, alone=alone)
        return caught.value.reason

    assert await reason_of("1") == "DEADLINE_EXCEEDED"
    os.kill(slow.pid, signal.SIGSTOP)
    assert await reason_of("2") == "UNAVAILABLE"
    await connection.close()


async def test_a_slow_process_is_left_to_think(slow: Process) -> None:
    connection = SystemConnection(slow.address)
    await connection.describe()
    asked = asyncio.create_task(connection.process("echo", EXAMPLE, call_id="1", timeout=1.5))
    with pytest.raises(RemoteFailure) as caught:
        await asked
    assert caught.value.reason == "DEADLINE_EXCEEDED"
    await connection.close()


def test_stock_servers_accept_how_often_they_are_pinged() -> None:
    # They end a connection that is pinged more often than every five minutes.
    assert dict(unary._SELDOM_PINGED)["grpc.keepalive_time_ms"] > 5 * 60 * 1000
