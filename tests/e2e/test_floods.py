"""Floods: what callers without a token, or with one, can take from others."""

import asyncio
import resource
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from cbench_client import BenchClient, Refused
from cbench_client._gen.cbench.v1 import bench_pb2
from tests.fixtures.floods import (
    calls_never_read,
    is_closed,
    memory_peak,
    pinging,
    silent_connections,
)

from .following import follow
from .processes import DaemonProcess, Process, examples, start_system, wait_until

RUN = "/cbench.v1.Bench/GetRun"
UPLOAD = "/cbench.v1.Bench/UploadExamples"
CHECK = "/grpc.health.v1.Health/Check"
WATCH = "/grpc.health.v1.Health/Watch"
MAX_CALLS = 20


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    folder = tmp_path_factory.mktemp("locked")
    tokens = folder / "tokens"
    tokens.write_text("\n".join(["secret", *map(_line, ("greedy", "honest"))]))
    flags = [f"--token-file={tokens}", f"--max-calls={MAX_CALLS}", "--max-runs=2"]
    with DaemonProcess(folder / "home", *flags) as daemon:
        yield daemon


def _line(name: str) -> str:
    from cbench_server.rpc.grants import digest_of

    return f"{name} run {digest_of(name)}"


def serves(daemon: DaemonProcess, token: str = "secret") -> bool:
    """Whether a caller with a token, and one who asks for health without, are served."""
    with BenchClient(daemon.address, token=token) as client:
        list(client.list())
    with grpc.insecure_channel(daemon.address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        status = stub.Check(health_pb2.HealthCheckRequest(), timeout=20).status
    return bool(status == health_pb2.HealthCheckResponse.SERVING)


async def _silence() -> AsyncIterator[bytes]:
    await asyncio.Event().wait()
    yield b""


def test_streams_held_without_a_token_keep_nobody_out(locked: DaemonProcess) -> None:
    with grpc.insecure_channel(locked.address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        held = [stub.Watch(health_pb2.HealthCheckRequest()) for _ in range(200)]
        for watcher in held:
            assert next(watcher).status == health_pb2.HealthCheckResponse.SERVING
        assert serves(locked)


async def test_calls_that_never_send_their_message_are_refused_at_once(
    locked: DaemonProcess,
) -> None:
    async with grpc.aio.insecure_channel(locked.address) as channel:
        for method in (RUN, UPLOAD, "/cbench.v1.Gateway/Attach"):
            calls = [channel.stream_unary(method)(_silence()) for _ in range(100)]
            codes = {await call.code() for call in calls}
            assert codes == {grpc.StatusCode.UNAUTHENTICATED}
    assert await asyncio.to_thread(serves, locked)


def test_health_checks_that_never_read_their_answer_keep_nobody_out(
    locked: DaemonProcess,
) -> None:
    with ExitStack() as held:
        for method in (CHECK, WATCH, CHECK):
            held.enter_context(calls_never_read(locked.address, method, 200))
        assert serves(locked)
        assert serves(locked)


def test_nothing_of_a_message_without_a_token_is_read(locked: DaemonProcess) -> None:
    before = memory_peak(locked.pid)
    sent = bytes(60_000_000)
    options = [("grpc.max_send_message_length", -1)]
    with grpc.insecure_channel(locked.address, options) as channel:
        for method, compression in ((RUN, None), (RUN, grpc.Compression.Gzip), (CHECK, None)):
            call = channel.unary_unary(method).future(sent, compression=compression)
            expected = "OK" if method == CHECK else "UNAUTHENTICATED"
            assert call.code().name == expected
    assert memory_peak(locked.pid) - before < 30
    assert serves(locked)


def test_what_nobody_reads_of_a_call_that_is_held_is_not_taken(locked: DaemonProcess) -> None:
    """A watcher of health without a token is held, and may send a message of any size."""
    before = memory_peak(locked.pid)
    sent = bytes(12_000_000)
    with grpc.insecure_channel(locked.address, [("grpc.max_send_message_length", -1)]) as channel:
        held = [channel.unary_stream(WATCH)(sent) for _ in range(60)]
        for watcher in held:
            assert next(watcher)
        assert serves(locked)
        # Whatever was to come of the messages has begun to.
        for _ in range(3):
            with BenchClient(locked.address, token="secret") as client:
                client.upload(examples(200))
    assert memory_peak(locked.pid) - before < 100


def test_silent_connections_are_bounded_and_closed(tmp_path: Path) -> None:
    flags = ("--token=secret", "--max-connections=20")
    with DaemonProcess(tmp_path / "home", *flags) as daemon:
        with silent_connections(daemon.address, 60) as held:
            wait_until(lambda: sum(map(is_closed, held)) >= 40)
            wait_until(lambda: all(map(is_closed, held)))
            assert serves(daemon)
        with calls_never_read(daemon.address, WATCH, 50):
            assert daemon.terminate() == 0


def test_connections_without_a_call_are_closed_and_those_with_one_stay(tmp_path: Path) -> None:
    # A daemon as it is, but for the time, which is five minutes.
    program = (
        "import sys; from cbench_server.rpc import server; server.IDLE_SECONDS = 1; "
        "from cbench_server.daemon import main; sys.exit(main())"
    )
    flags = ["--address", "127.0.0.1:0", "--home", str(tmp_path / "home")]
    with (
        Process([sys.executable, "-c", program, *flags]) as daemon,
        BenchClient(daemon.address) as client,
        calls_never_read(daemon.address, RUN, 1) as busy,
    ):
        for _ in range(2):
            with calls_never_read(daemon.address, RUN, 0) as idle:
                wait_until(lambda idle=idle: is_closed(idle))
            # Clients whose connection was closed make it again by themselves.
            assert list(client.list()) == []
        assert not is_closed(busy)


def test_a_connection_that_does_nothing_but_ping_is_closed(locked: DaemonProcess) -> None:
    with pinging(locked.address, 10) as patient, pinging(locked.address, 2_000) as hasty:
        wait_until(lambda: is_closed(hasty))
        assert not is_closed(patient)
        assert serves(locked)


def test_the_daemon_has_all_the_descriptors_it_may_have(locked: DaemonProcess) -> None:
    soft, hard = resource.prlimit(locked.pid, resource.RLIMIT_NOFILE)
    assert soft == hard


def test_few_descriptors_bear_a_flood_of_connections(tmp_path: Path) -> None:
    few = ("prlimit", "--nofile=200:200")
    with (
        DaemonProcess(tmp_path / "home", under=few) as daemon,
        BenchClient(daemon.address) as early,
    ):
        assert list(early.list()) == []
        with silent_connections(daemon.address, 300) as held:
            wait_until(lambda: sum(map(is_closed, held)) >= 200)
            # Who was there before goes on.
            assert list(early.list()) == []
            wait_until(lambda: all(map(is_closed, held)))
            assert serves(daemon)
        assert "at most 100 connections" in "".join(daemon.errors)


async def test_one_name_holds_at_most_half_of_the_calls(locked: DaemonProcess) -> None:
    greedy = [("authorization", "Bearer greedy")]
    async with grpc.aio.insecure_channel(locked.address) as channel:
        upload = channel.stream_unary(UPLOAD)
        held = [upload(_silence(), metadata=greedy) for _ in range(MAX_CALLS)]
        ends = asyncio.as_completed([call.code() for call in held])
        for _ in range(MAX_CALLS // 2):
            assert await next(ends) is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert await asyncio.to_thread(serves, locked, "honest")
        with pytest.raises(Refused, match="greedy") as told:
            await asyncio.to_thread(serves, locked, "greedy")
        assert told.value.code == "RESOURCE_EXHAUSTED"
        for call in held:
            call.cancel()


def test_runs_of_one_name_leave_a_turn_to_others(locked: DaemonProcess) -> None:
    with (
        start_system("echo", "", "3600") as stuck,
        BenchClient(locked.address, token="greedy") as greedy,
        BenchClient(locked.address, token="honest") as honest,
    ):
        digest, _ = greedy.upload(examples(2))
        spec = {
            "systems": [{"target": stuck.address}],
            "datasets": [{"name": "given", "upload": digest}],
        }
        runs = [greedy.start(spec) for _ in range(3)]
        wait_until(lambda: greedy.get(runs[0]).state == bench_pb2.RUN_STATE_RUNNING)
        quick = {"systems": [{"builtin": "identity"}], "datasets": [{"name": "mini-qa"}]}
        assert follow(honest.evaluate(quick)).state == "SUCCEEDED"
        states = [greedy.get(run).state for run in runs[1:]]
        assert states == [bench_pb2.RUN_STATE_QUEUED] * 2
        for run in runs:
            greedy.cancel(run)
