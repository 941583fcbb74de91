"""A process that is stopped for longer than what it waits for has time goes on to wait."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from cbench_server.clocks.standstill import time_awake

WAITERS = Path(__file__).parents[1] / "fixtures" / "stopped_waiters.py"
WHAT = ("of_a_timeout", "of_an_async_system", "of_a_sync_system", "of_an_evaluator")


def test_the_time_in_which_a_process_was_stopped_does_not_count() -> None:
    with ExitStack() as ends:
        waiters = {}
        for what in WHAT:
            command = [sys.executable, str(WAITERS), what]
            waiters[what] = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            ends.callback(waiters[what].kill)
        for each in waiters.values():
            os.waitid(os.P_PID, each.pid, os.WSTOPPED | os.WNOWAIT)
        time.sleep(4)
        for each in waiters.values():
            os.kill(each.pid, signal.SIGCONT)
        said = {what: each.communicate(timeout=60)[0].strip() for what, each in waiters.items()}
    assert said == dict.fromkeys(WHAT, "answered")


async def test_what_takes_too_long_is_late_all_the_same() -> None:
    with pytest.raises(TimeoutError):
        async with time_awake(0.05) as limit:
            await asyncio.sleep(60)
    assert limit.expired()
