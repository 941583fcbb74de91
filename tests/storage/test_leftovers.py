"""Leftovers are tidied up beside processes that work, and never in their way."""

import asyncio
import threading
from pathlib import Path

from cbench_server.storage.leftovers import remove_leftovers
from cbench_server.storage.locks import RunLocks


def test_a_run_can_be_claimed_while_its_folder_is_tidied(tmp_path: Path) -> None:
    folder = tmp_path / "locks"
    folder.mkdir()
    done = threading.Event()

    def tidy() -> None:
        while not done.is_set():
            remove_leftovers(tmp_path)

    async def claim() -> None:
        locks = RunLocks(folder)
        for each in range(3000):
            claim = await locks.acquire(f"run{each % 3}")
            assert claim is not None, f"claim {each} was refused"
            await locks.release(claim)

    tidier = threading.Thread(target=tidy)
    tidier.start()
    try:
        asyncio.run(claim())
    finally:
        done.set()
        tidier.join()


def test_locks_of_the_dead_go_and_those_of_the_living_stay(tmp_path: Path) -> None:
    folder = tmp_path / "locks"
    folder.mkdir()
    (folder / "dead.lock").touch()
    locks = RunLocks(folder)
    claim = asyncio.run(locks.acquire("alive"))
    assert claim is not None
    assert remove_leftovers(tmp_path) == ["locks/dead.lock"]
    assert asyncio.run(locks.renew(claim))
