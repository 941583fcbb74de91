"""What decodes, and could be shown to nobody, is refused where a run is imported."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from cbench_server.errors import DamagedRun
from cbench_server.events import RowScored
from cbench_server.results import EvalRow
from cbench_server.rpc.times import set_seconds
from cbench_server.runs.store import RowQuery, SpooledExample
from cbench_server.spec import Run, RunState
from cbench_server.storage.run_files import export_run, import_run
from cbench_server.storage.run_format import (
    BadRunFile,
    EventFrame,
    ExampleFrame,
    Frame,
    RunFrame,
    encode_frames,
    read_run_file,
)
from cbench_server.storage.sqlite import SqliteStore

MakeRun = Callable[..., Run]
MakeRow = Callable[..., EvalRow]
MakeExample = Callable[..., SpooledExample]

Frames = list[Frame]
DEEP = b"\0" + b"\x81\xa1a" * 2000 + b"\1"
ODD_TIMES = (1e300, -1e300, float("nan"), float("inf"), 253_402_300_800.0)


@pytest.fixture
async def frames(
    home: Path, tmp_path: Path, make_run: MakeRun, make_row: MakeRow, make_example: MakeExample
) -> Frames:
    """A run of four rows as frames: the run, its examples, its acceptance and its rows."""
    store = SqliteStore.open(home)
    await store.create_run(make_run(state=RunState.RUNNING))
    await store.add_examples("r1", [make_example(n) for n in range(4)], complete=True)
    rows = [make_row(n, processed={"answer": n}, metadata={"repeat": 2**64 - 1}) for n in range(4)]
    done = {"state": RunState.SUCCEEDED, "end_time": 150.5, "systems": ("a",)}
    await store.append("r1", [RowScored(row) for row in rows], update=done)
    with export_run(store.database, "r1") as parts:
        (tmp_path / "r1.run").write_bytes(b"".join(parts))
    await store.close()
    return list(read_run_file(tmp_path / "r1.run"))


def changed(packed: bytes, **values: Any) -> bytes:
    return msgspec.msgpack.encode({**msgspec.msgpack.decode(packed), **values})


def with_run(frames: Frames, values: dict[str, Any] | None = None, **of_frame: Any) -> Frames:
    run = frames[0]
    assert isinstance(run, RunFrame)
    record = changed(run.record, **(values or {}))
    return [msgspec.structs.replace(run, record=record, **of_frame), *frames[1:]]


def with_example(frames: Frames, **of_frame: Any) -> Frames:
    assert isinstance(frames[1], ExampleFrame)
    return [frames[0], msgspec.structs.replace(frames[1], **of_frame), *frames[2:]]


def with_event(frames: Frames, at: int, head: dict[str, Any] | None, **of_frame: Any) -> Frames:
    """`at` counts from the acceptance, which is the first."""
    event = frames[5 + at]
    assert isinstance(event, EventFrame)
    event = msgspec.structs.replace(event, head=changed(event.head, **(head or {})), **of_frame)
    return [*frames[: 5 + at], event, *frames[6 + at :]]


def packed(value: object) -> bytes:
    return b"\0" + msgspec.msgpack.encode(value)


ODD: dict[str, Callable[[Frames], Frames]] = {
    **{f"create-{time}": lambda f, t=time: with_run(f, {"create_time": t}) for time in ODD_TIMES},
    **{f"end-{time}": lambda f, t=time: with_run(f, {"end_time": t}) for time in ODD_TIMES},
    **{f"event-{time}": lambda f, t=time: with_event(f, 2, None, time=t) for time in ODD_TIMES},
    "total-rows": lambda f: with_run(f, {"total_rows": 2**63}),
    "repeats": lambda f: with_run(
        f, {"spec": msgspec.msgpack.decode(f[0].record)["spec"] | {"repeats": 2**31}}
    ),
    "many-examples": lambda f: with_run(f, examples=2**62, is_whole=False),
    "many-events": lambda f: with_run(f, last_seq=2**62, is_whole=False),
    "fewer-than-none": lambda f: with_run(f, last_seq=-5, is_whole=False),
    "index": lambda f: with_example(f, index=2**63),
    "no-fields": lambda f: with_example(f, body=packed([1])),
    "no-id": lambda f: with_example(f, body=packed({"context": ""})),
    "no-text-as-key": lambda f: with_example(f, body=packed({"id": 1, 2: 3})),
    "of-no-kind": lambda f: with_example(f, body=packed({"id": msgspec.msgpack.Ext(5, b"x")})),
    "deep": lambda f: with_example(f, body=DEEP),
    "rather-deep": lambda f: with_event(f, 1, None, body=b"\0" + DEEP[-200:]),
    "tokens": lambda f: with_example(f, tokens=msgspec.msgpack.encode([1])),
    "places": lambda f: [*f[:4], msgspec.structs.replace(f[4], ordinal=9), *f[5:]],
    "row-tokens": lambda f: with_event(f, 1, {"input_tokens": 2**63}),
    "attempts": lambda f: with_event(f, 1, {"attempts": 2**31}),
    "output": lambda f: with_event(f, 1, None, body=packed(["x"])),
    "of-another-run": lambda f: with_event(f, 0, {"run_id": "r2"}),
}


@pytest.mark.parametrize("name", ODD)
async def test_what_nobody_could_be_shown_is_refused(
    frames: Frames, tmp_path: Path, name: str
) -> None:
    odd = tmp_path / "odd.run"
    odd.write_bytes(b"".join(encode_frames(ODD[name](frames))))
    store = SqliteStore.open(tmp_path / "other")
    with pytest.raises(BadRunFile, match=r"odd\.run is damaged .*nothing of it was imported"):
        await import_run(store, odd, new_id="new")
    assert await store.list_runs() == []
    await store.close()


async def test_what_a_run_of_ours_may_hold_is_taken(frames: Frames, tmp_path: Path) -> None:
    (tmp_path / "r1.run").write_bytes(b"".join(encode_frames(frames)))
    store = SqliteStore.open(tmp_path / "other")
    run, _ = await import_run(store, tmp_path / "r1.run")
    rows = (await store.read_rows(run.run_id)).rows
    assert [row.metadata for row in rows] == [{"repeat": 2**64 - 1}] * 4
    await store.close()


async def test_many_losses_are_counted_and_the_first_are_named(
    frames: Frames, tmp_path: Path
) -> None:
    losses: Frames = [f"event {number}" for number in range(1300)]
    (tmp_path / "r1.run").write_bytes(
        b"".join(encode_frames([*with_run(frames, is_whole=False), *losses]))
    )
    store = SqliteStore.open(tmp_path / "other")
    run, _ = await import_run(store, tmp_path / "r1.run")
    [note] = run.notes
    assert "event 0; event 1; " in note.text
    assert note.text.endswith("event 199; 1,100 more.")
    await store.close()


async def test_a_field_that_the_example_lacks_is_named(frames: Frames, tmp_path: Path) -> None:
    odd = with_event(frames, 1, {"carried": ["nothing"]})
    (tmp_path / "r1.run").write_bytes(b"".join(encode_frames(odd)))
    store = SqliteStore.open(tmp_path / "other")
    run, _ = await import_run(store, tmp_path / "r1.run")
    with pytest.raises(DamagedRun, match='field "nothing" of example 0 of run "r1" is missing'):
        await store.read_rows(run.run_id, RowQuery(processed=True))
    await store.close()


@pytest.mark.parametrize("time", ODD_TIMES)
def test_an_odd_time_that_is_stored_can_be_shown(time: float) -> None:
    stamp, span = Timestamp(), Duration()
    for message in (stamp, span):
        set_seconds(message, time)
        message.ToJsonString()
