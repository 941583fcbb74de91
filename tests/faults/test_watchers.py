"""Watchers that are many or slow, and peers that drip: nobody else waits, and memory stays flat."""

import asyncio
import socket
import threading
from contextlib import closing, suppress
from pathlib import Path

import grpc.aio
import pytest

from cbench_client import BenchClient, ClientError
from cbench_client._gen.cbench.v1 import bench_pb2
from tests.e2e.following import Followed, follow, run
from tests.e2e.processes import DaemonProcess, examples, start_system, wait_until

from .test_junk import is_sound, memory_of
from .test_requests import spec_of

SUCCEEDED, WAITING = 3, 6


async def watch_all(address: str, run_id: str, watchers: int) -> list[Followed]:
    """Follow a run so many times at once, over a few connections."""
    options = [("grpc.use_local_subchannel_pool", 1)]
    channels = [grpc.aio.insecure_channel(address, options) for _ in range(10)]

    async def watch(number: int) -> Followed:
        method = channels[number % 10].unary_stream(
            "/cbench.v1.Bench/WatchRun",
            bench_pb2.WatchRunRequest.SerializeToString,
            bench_pb2.WatchRunResponse.FromString,
        )
        seen = Followed()
        async for response in method(bench_pb2.WatchRunRequest(run_id=run_id)):
            for event in response.events:
                seen.take(event)
        return seen

    try:
        return await asyncio.gather(*(watch(number) for number in range(watchers)))
    finally:
        for channel in channels:
            await channel.close()


@pytest.mark.parametrize(
    ("watchers", "rows"), [(20, 100), pytest.param(900, 200, marks=pytest.mark.faults)]
)
@pytest.mark.timeout(300)
async def test_many_watchers_all_see_all(
    daemon: DaemonProcess, client: BenchClient, watchers: int, rows: int
) -> None:
    with start_system("echo", "", "0.02") as system:
        run_id = client.start(spec_of(client, system, rows))
        before = memory_of(daemon)
        everyone = await watch_all(daemon.address, run_id, watchers)
        assert memory_of(daemon) - before < 256
    expected = [("echo", ordinal, 0) for ordinal in range(rows)]
    assert all(sorted(seen.keys) == expected for seen in everyone)
    assert all(seen.state == "SUCCEEDED" for seen in everyone)


@pytest.mark.faults
@pytest.mark.timeout(300)
def test_slow_readers_cost_no_memory_and_hold_up_nobody(
    daemon: DaemonProcess, client: BenchClient
) -> None:
    """Five readers take ten events each and then none, while 200 MB of rows are made."""
    rows = 20_000
    data = examples(rows, context="The capital of France is Paris. " * 320)
    with start_system("quotes") as system:
        digest, _ = client.upload(data)
        given = {"name": "given", "upload": digest}
        spec = {"systems": [{"target": system.address}], "datasets": [given], "timed_rows": 0}
        # What a run takes whoever watches is taken before.
        warm = client.start(spec)
        wait_until(lambda: client.get(warm).state == SUCCEEDED, 200)
        before = memory_of(daemon)
        run_id = client.start(spec)
        readers = [client.watch(run_id, include_processed=True) for _ in range(5)]
        seen = [Followed() for _ in readers]
        for reader, taken in zip(readers, seen, strict=True):
            for _ in range(10):
                taken.take(next(reader))
        wait_until(lambda: client.get(run_id).state == SUCCEEDED, 200)
        assert memory_of(daemon) - before < 64
        for reader, taken in zip(readers, seen, strict=True):
            for event in reader:
                taken.take(event)
    assert all(len(taken.rows) == rows for taken in seen)


class Relay:
    """A way to a system on which, once it `drips`, answers come byte by byte."""

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"
        self.drips = threading.Event()
        self._flows = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def mend(self) -> None:
        self.drips.clear()
        self._flows.set()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            far = socket.create_connection(self._target)
            for source, drain, is_answer in ((near, far, False), (far, near, True)):
                work = (source, drain, is_answer)
                threading.Thread(target=self._pass_on, args=work, daemon=True).start()

    def _pass_on(self, source: socket.socket, drain: socket.socket, is_answer: bool) -> None:
        try:
            while data := source.recv(1 << 16):
                while is_answer and data and self.drips.is_set():
                    drain.sendall(data[:1])
                    data = data[1:]
                    self._flows.wait(1.0)
                drain.sendall(data)
        except OSError:
            pass
        for end in (source, drain):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._server.close()


@pytest.mark.faults
@pytest.mark.timeout(300)
def test_a_system_whose_answers_drip_is_waited_for_and_costs_no_row(
    daemon: DaemonProcess, client: BenchClient
) -> None:
    with start_system("echo", "", "0.02") as system, closing(Relay(system.address)) as relay:
        digest, _ = client.upload(examples(600))
        given = {"datasets": [{"name": "given", "upload": digest}], "timed_rows": 0}
        spec = {**given, "systems": [{"target": relay.address}], "row_timeout": 5.0}
        run_id = client.start(spec)
        wait_until(lambda: client.get(run_id).progress.completed_rows >= 20)
        before = memory_of(daemon)
        relay.drips.set()
        wait_until(lambda: client.get(run_id).state == WAITING, 120)
        assert memory_of(daemon) - before < 64
        relay.mend()
        seen = follow(client.watch(run_id))
    assert (seen.state, seen.failures, len(seen.rows)) == ("SUCCEEDED", {}, 600)


def test_an_outcome_that_never_comes_is_cut_by_its_deadline(
    daemon: DaemonProcess, client: BenchClient
) -> None:
    with start_system("slow-first", "3600") as system:
        spec = {"systems": [{"target": system.address}], "row_timeout": 1.0, "timed_rows": 0}
        seen = run(client, {**spec, "asked_again": 0}, examples(1))
    assert (seen.state, seen.failures) == ("SUCCEEDED", {"e0": "DEADLINE_EXCEEDED"})


@pytest.mark.faults
@pytest.mark.timeout(200)
def test_a_socket_that_drips_bytes_is_refused_as_a_system(client: BenchClient) -> None:
    ended = threading.Event()

    def drip(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            while not ended.wait(0.5):
                try:
                    connection.send(b"\0")
                except OSError:
                    return

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=drip, args=(server,), daemon=True).start()
        try:
            target = f"127.0.0.1:{server.getsockname()[1]}"
            digest, _ = client.upload(examples(1))
            spec = {
                "systems": [{"target": target}],
                "datasets": [{"name": "given", "upload": digest}],
            }
            with pytest.raises(ClientError):
                client.start(spec)
        finally:
            ended.set()
    is_sound(client)


def test_clients_that_drip_bytes_keep_nobody_out(daemon: DaemonProcess, tmp_path: Path) -> None:
    host, _, port = daemon.address.rpartition(":")
    dripping = [socket.create_connection((host, int(port))) for _ in range(50)]
    try:
        for byte in b"PRI * HTTP/2.0\r\n":
            for connection in dripping:
                connection.send(bytes([byte]))
        with BenchClient(daemon.address) as client:
            spec = {"systems": [{"builtin": "identity"}], "datasets": [{"name": "mini-qa"}]}
            assert follow(client.evaluate(spec)).state == "SUCCEEDED"
    finally:
        for connection in dripping:
            connection.close()
