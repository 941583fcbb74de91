"""What clients send to be imported is bounded while it comes, not only once it is here."""

import os
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from cbench_client import BenchClient, Refused
from tests.e2e.processes import DaemonProcess, wait_until
from tests.faults.machine import small_disk

MB = 1 << 20
SPEC = {"systems": [{"builtin": "identity"}], "datasets": [{"name": "mini-qa", "max_examples": 2}]}


class Endless:
    """Pieces without end, and how many of them were taken; stops far beyond any bound here."""

    def __init__(self, most: int = 200) -> None:
        self.taken, self._most = 0, most

    def __iter__(self) -> Iterator[bytes]:
        while self.taken < self._most:
            self.taken += 1
            yield os.urandom(MB)


def a_run(client: BenchClient) -> tuple[str, bytes]:
    """Make a run, and return its id and its file."""
    run_id = list(client.evaluate(SPEC))[-1].finished.run_id
    return run_id, b"".join(client.export(run_id, "run"))


def refusal_of(client: BenchClient, pieces: Iterable[bytes]) -> Refused:
    with pytest.raises(Refused) as refused:
        client.import_run(pieces)
    return refused.value


def test_no_more_is_spooled_than_the_store_may_hold(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with (
        DaemonProcess(home, "--max-store-mb", "20") as daemon,
        BenchClient(daemon.address) as client,
    ):
        run_id, content = a_run(client)
        pieces = Endless()
        refused = refusal_of(client, pieces)
        assert refused.reason == "STORE_FULL"
        assert "takes more than 20 MB, the max_store_mb" in str(refused)
        # A client is a few pieces ahead of what the daemon has read.
        assert pieces.taken < 60
        wait_until(lambda: list((home / "imports").iterdir()) == [])
        # What fits is taken, also after what did not.
        client.delete(run_id)
        assert client.import_run([content])[0].run_id == run_id


def test_those_who_import_at_once_share_the_room(tmp_path: Path) -> None:
    home = tmp_path / "home"
    release = threading.Event()
    refusals: list[Refused] = []

    def held() -> Iterator[bytes]:
        for _ in range(12):
            yield os.urandom(MB)
        release.wait(60)

    def spooled() -> int:
        return sum(path.stat().st_size for path in (home / "imports").glob("*.part"))

    with (
        DaemonProcess(home, "--max-store-mb", "20") as daemon,
        BenchClient(daemon.address) as client,
        BenchClient(daemon.address) as other,
    ):
        first = threading.Thread(target=lambda: refusals.append(refusal_of(other, held())))
        first.start()
        try:
            wait_until(lambda: spooled() >= 11 * MB)
            assert refusal_of(client, Endless()).reason == "STORE_FULL"
            assert spooled() <= 12 * MB
        finally:
            release.set()
            first.join()
        assert [each.reason for each in refusals] == ["BAD_RUN_FILE"]
        # The room is free again: so much is refused for what it is, random bytes.
        assert refusal_of(client, Endless(15)).reason == "BAD_RUN_FILE"


def test_an_import_leaves_the_disk_to_others(tmp_path: Path) -> None:
    with (
        small_disk(tmp_path / "disk", 48) as disk,
        DaemonProcess(disk / "home") as daemon,
        BenchClient(daemon.address) as client,
    ):
        free, least = os.statvfs(disk), []

        def seen() -> Iterator[bytes]:
            for piece in Endless():
                least.append(os.statvfs(disk).f_bavail)
                yield piece

        with pytest.raises(Refused, match="has no room to hold what is being imported") as refused:
            client.import_run(seen())
        assert refused.value.reason == "STORE_FULL"
        assert len(least) < 60
        assert min(least) > 0.4 * free.f_bavail
        assert a_run(client)
