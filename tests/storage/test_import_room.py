"""What a file of a run holds is bounded: a few kB of it may be made to unpack to gigabytes."""

import random
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cbench_client import BenchClient, Refused
from cbench_server.storage.codec import pack
from cbench_server.storage.import_room import NoRoom, Room, has_more_values
from cbench_server.storage.run_format import (
    EventFrame,
    ExampleFrame,
    Frame,
    RunFrame,
    compressed,
    encode_frames,
    read_run_file,
)
from tests.e2e.processes import DaemonProcess
from tests.fixtures import preloaded
from tests.fixtures.floods import memory_peak

SPEC = {
    "systems": [{"builtin": "identity"}],
    "datasets": [{"name": "mini-qa", "max_examples": 2}],
    "evaluators": [{"name": "answer-quality"}],
}
# The head of a map of one text, and of one list, each as long as MessagePack can say.
TEXT, LIST = b"\x81\xa1a\xdb\x0f\xff\xff\xf8", b"\x81\xa1a\xdd\x00\xff\xff\xff"
# What a mere import of a small run takes, and what holding the largest part does.
USUAL_MB, ONE_PART_MB = 60, 400


def bomb(head: bytes, size: int = 2**28) -> bytes:
    """Compress a lot of the same after a head."""
    packer = zlib.compressobj(9)
    parts = [packer.compress(head)]
    parts += [packer.compress(bytes(2**20)) for _ in range(size // 2**20)]
    return b"".join((*parts, packer.flush()))


def replaced(frames: list[Frame], kind: type, **parts: Any) -> list[Frame]:
    """Give the last frame of a kind other parts."""
    at = max(place for place, frame in enumerate(frames) if type(frame) is kind)
    changed: Any = msgspec.structs.replace(frames[at], **parts)  # type: ignore[type-var]
    return [*frames[:at], changed, *frames[at + 1 :]]


def is_row(frame: Frame) -> bool:
    return isinstance(frame, EventFrame) and frame.body is not None


def up_to_a_row(frames: list[Frame]) -> list[Frame]:
    """Leave out what follows the last row, so that it is the last event."""
    return frames[: max(place for place, frame in enumerate(frames) if is_row(frame)) + 1]


LARGE = bytes(200 * 2**20)
BOMBS: dict[str, tuple[Callable[[list[Frame]], list[Frame]], int]] = {
    "a text in an example": (
        lambda frames: replaced(frames, ExampleFrame, body=b"\1" + bomb(TEXT)),
        USUAL_MB,
    ),
    "a text in an answer": (
        lambda frames: replaced(up_to_a_row(frames), EventFrame, body=b"\1" + bomb(TEXT)),
        USUAL_MB,
    ),
    "values in an example": (
        lambda frames: replaced(frames, ExampleFrame, body=b"\1" + bomb(LIST, 2**24)),
        ONE_PART_MB,
    ),
    "a frame": (lambda frames: replaced(frames, ExampleFrame, body=b"\0" + LARGE), USUAL_MB),
    "the head of an event": (
        lambda frames: replaced(frames, EventFrame, head=LIST + bytes(2**24)),
        ONE_PART_MB,
    ),
    "tokens": (
        lambda frames: replaced(frames, ExampleFrame, tokens=LIST + bytes(2**24)),
        ONE_PART_MB,
    ),
    "labels": (
        lambda frames: replaced(frames, RunFrame, labels={f"{n}": "" for n in range(1_100_000)}),
        ONE_PART_MB,
    ),
    "the run": (lambda frames: replaced(frames, RunFrame, record=LIST + bytes(2**24)), ONE_PART_MB),
}


@pytest.fixture
def frames(tmp_path: Path) -> list[Frame]:
    """A run, as a file has it."""
    path = tmp_path / "whole.run"
    with DaemonProcess(tmp_path / "first") as daemon, BenchClient(daemon.address) as client:
        events = list(client.evaluate(SPEC))
        path.write_bytes(b"".join(client.export(events[-1].finished.run_id, "run")))
    return list(read_run_file(path))


def test_a_bomb_is_refused_and_fills_no_memory(frames: list[Frame], tmp_path: Path) -> None:
    home = tmp_path / "home"
    with DaemonProcess(home) as daemon, BenchClient(daemon.address) as client:
        before = memory_peak(daemon.pid)
        for name, (made, grows_mb) in sorted(BOMBS.items(), key=lambda each: each[1][1]):
            content = b"".join(compressed(encode_frames(made(frames))))
            (tmp_path / "bomb.run.gz").write_bytes(content)
            # No more than a client gets through in no time.
            assert len(content) < 4_000_000, name
            with pytest.raises(Refused, match=r"what was sent is too large \(one part of it") as no:
                client.import_run([content])
                pytest.fail(name)
            assert (no.value.reason, no.value.field) == ("BAD_RUN_FILE", "content")
            assert memory_peak(daemon.pid) - before < grows_mb, name
        assert list(client.list()) == []
    # The last of them, by the command, to a daemon and without one.
    with DaemonProcess(home) as daemon:
        for where in (["--server", daemon.address], []):
            done = preloaded.run(
                [str(preloaded.CBENCH), "import", str(tmp_path / "bomb.run.gz"), *where],
                capture_output=True,
                text=True,
                check=False,
                env={"CBENCH_HOME": str(tmp_path / "elsewhere")},
            )
            assert (done.returncode, done.stdout) == (2, "")
            assert "is too large (one part of it has more than 2,000,000 values)" in done.stderr


def test_what_just_has_room_is_taken() -> None:
    room = Room(2**21, 1_000)
    much = {"a": [0] * 995, "b": "x" * (2**20 + 1)}
    assert room.unpack(pack(msgspec.msgpack.encode(much)))
    for beyond in ({**much, "c": 0}, {"a": "x" * 2**21}, {"a": random.Random(1).randbytes(2**21)}):
        with pytest.raises(NoRoom):
            room.unpack(pack(msgspec.msgpack.encode(beyond)))


def test_values_are_counted_as_they_would_be_made() -> None:
    chosen = random.Random(16)
    for _ in range(60):
        value = made_of(chosen, 0)
        data, values = msgspec.msgpack.encode(value), count(value)
        assert not has_more_values(data, values)
        assert has_more_values(data, values - 1)
        # What ends early is for the decoder to refuse.
        has_more_values(data[: chosen.randrange(len(data))], values)


def made_of(chosen: random.Random, depth: int) -> Any:
    leaves: list[Callable[[], Any]] = [
        lambda: None,
        lambda: chosen.random() < 0.5,
        lambda: chosen.randrange(-(2 ** chosen.randrange(1, 64)), 2 ** chosen.randrange(1, 65)),
        chosen.random,
        lambda: "ä" * chosen.choice([0, 3, 15, 16, 130, 40_000]),
        lambda: chosen.randbytes(chosen.choice([0, 5, 300, 70_000])),
        lambda: msgspec.msgpack.Ext(
            5, chosen.randbytes(chosen.choice([0, 1, 2, 4, 8, 16, 300, 70_000]))
        ),
    ]
    if depth > 2 or (depth and chosen.random() < 0.5):
        return chosen.choice(leaves)()
    size = chosen.choice([0, 3, 15, 16]) if depth else chosen.choice([1, 16, 70_000])
    items = [made_of(chosen, depth + 1) if size < 50 else None for _ in range(size)]
    return {str(key): item for key, item in enumerate(items)} if chosen.random() < 0.5 else items


def count(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + len(value) + sum(map(count, value.values()))
    return 1 + sum(map(count, value)) if isinstance(value, list) else 1
