"""Import of runs: the frames of a file, batch by batch, into a run that is hidden until all is in.

A process that is killed meanwhile leaves a hidden run, which `finish_deletions` takes away.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from cbench_server.errors import DamagedRun
from cbench_server.events import RowScored, RunAccepted, RunFinished
from cbench_server.results import Failure
from cbench_server.spec import RunNote, RunState, renewed
from cbench_server.storage import codec, sums
from cbench_server.storage.codec import EncodedEvent
from cbench_server.storage.damage import SIGNS
from cbench_server.storage.import_checks import (
    check_count,
    check_fields,
    check_record,
    check_time,
)
from cbench_server.storage.import_room import NoRoom, Room
from cbench_server.storage.locks import is_run_id
from cbench_server.storage.run_format import (
    EventFrame,
    ExampleFrame,
    Frame,
    RunFrame,
    damaged_file,
    too_large_file,
)
from cbench_server.storage.run_rows import RunHead

# Values that nest too deeply to be decoded raise the last.
_SIGNS = (*SIGNS, DamagedRun, IndexError, RecursionError)
_BATCH_FRAMES, _BATCH_BYTES = 500, 4_000_000
# How many losses a note names, and how many characters of each.
_TOLD = 200

ExampleColumns = tuple[int, str, int, str, bytes, bytes]


@dataclass
class Batch:
    """Some examples and events, as a transaction takes them."""

    examples: list[ExampleColumns] = field(default_factory=list)
    events: list[tuple[float, EncodedEvent]] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Bytes it holds in memory."""
        return sum(len(each[-1]) for each in self.examples) + sum(
            event.size for _, event in self.events
        )


class RunFile:
    """A file, or another store's run, that is being read, and what has been seen of it."""

    def __init__(
        self,
        path: Path | str,
        frames: Iterator[Frame],
        new_id: str = "",
        room: Room | None = None,
    ) -> None:
        """Read the first frame. With a `new_id`, the run is called so in all of its parts.

        `path` is how messages call what the frames come from. Without a `room`, they may be of any
        size, as those of a store are.
        """
        self._path = path
        self._room = room
        self._frames = frames
        first = next(self._frames, None)
        if not isinstance(first, RunFrame):
            raise damaged_file(path, "it does not begin with a run")
        self.frame = first
        try:
            self.run = replace(codec.decode_run(self._checked(first.record)), damage="")
            check_record(self.run)
            check_count(first.last_seq, "last_seq")
            check_count(first.examples, "examples")
            RunState(first.state)
        except NoRoom as error:
            raise too_large_file(path, error) from error
        except _SIGNS as error:
            raise damaged_file(path, f"its run cannot be decoded: {error}") from error
        self._old_id, self._new_id = self.run.run_id, new_id
        if new_id:
            self.run = replace(self.run, run_id=new_id)
        if not is_run_id(self.run.run_id) or (not new_id and self.run.run_id != first.run_id):
            raise damaged_file(path, "its run has no valid id")
        self.record = codec.encode_run(self.run) if new_id else first.record
        self.events = 0
        self.examples = 0
        self._lost: list[str] = []
        self._losses = 0
        self._last_seq = 0
        self._last_ordinal = -1

    def head(self) -> RunHead:
        """Return the row of the run, hidden and still without examples and events."""
        return RunHead(
            id=0,
            run_id=self.run.run_id,
            request_id=None,
            spec_digest=self.frame.spec_digest,
            state=str(self.run.state),
            create_time=float(self.run.create_time),
            end_time=self.run.end_time,
            last_seq=0,
            examples=0,
            spool_complete=False,
            deleted=True,
            pinned=self.frame.pinned,
            systems=0,
            labels=len(self.run.spec.labels),
            record_sum=sums.record_sum(self.run.run_id, self.record),
            sum=sums.UNKNOWN,
        )

    def next_batch(self) -> Batch | None:
        """Return the next few examples and events; None at the end, which is verified then."""
        batch, size = Batch(), 0
        for frame in islice(self._frames, _BATCH_FRAMES):
            size += self._take(frame, batch)
            if size >= _BATCH_BYTES:
                break
        if size:
            return batch
        # The last of each has the number that tells how many there are, so none is missing.
        is_all = (self._last_seq, self._last_ordinal + 1) == (
            self.frame.last_seq,
            self.frame.examples,
        )
        is_all = is_all and (self.events, self.examples) == (self._last_seq, self._last_ordinal + 1)
        if self.frame.is_whole and not is_all:
            raise damaged_file(self._path, "it does not hold all that its run has")
        return None

    def _take(self, frame: Frame, batch: Batch) -> int:
        try:
            if isinstance(frame, ExampleFrame):
                batch.examples.append(self._example(frame))
                return len(frame.body)
            if isinstance(frame, EventFrame):
                batch.events.append((frame.time, self._event(frame)))
                return len(frame.head) + len(frame.body or b"")
        except _SIGNS as error:
            raise damaged_file(self._path, str(error)) from error
        except NoRoom as error:
            raise too_large_file(self._path, error) from error
        if not isinstance(frame, str):
            raise damaged_file(self._path, "it holds two runs")
        self._losses += 1
        if self._losses <= _TOLD:
            self._lost.append(frame[:_TOLD])
        return len(frame) + 1

    def _example(self, frame: ExampleFrame) -> ExampleColumns:
        if frame.ordinal <= self._last_ordinal or self.events:
            raise ValueError(f"example {frame.ordinal} is out of place")
        self._last_ordinal = frame.ordinal
        name = f"example {frame.ordinal}"
        check_count(frame.index, f"the index of {name}")
        fields = codec.decode_fields(self._unpacked(frame.body))
        check_fields(fields, name)
        if "id" not in fields:
            raise ValueError(f"{name} has no id")
        check_fields(codec.decode_fields(self._checked(frame.tokens)), f"the tokens of {name}")
        self.examples += 1
        return (frame.ordinal, frame.dataset, frame.index, frame.digest, frame.tokens, frame.body)

    def _event(self, frame: EventFrame) -> EncodedEvent:
        if frame.seq <= self._last_seq:
            raise ValueError(f"event {frame.seq} is out of place")
        self._last_seq = frame.seq
        self.events += 1
        name = f"event {frame.seq}"
        check_time(frame.time, f"the time of {name}")
        event = codec.decode_event(frame.kind, self._checked(frame.head), None)
        check_record(event, f"{name}: ")
        if not isinstance(event, RowScored):
            head = frame.head
            if isinstance(event, RunAccepted | RunFinished) and event.run.run_id != self._old_id:
                raise ValueError(f'{name} is of another run, "{event.run.run_id}"')
            if self._new_id and isinstance(event, RunAccepted | RunFinished):
                head = codec.encode_run(replace(event.run, run_id=self._new_id))
            return EncodedEvent(frame.kind, head)
        row = event.row
        if frame.body is not None:
            check_fields(codec.decode_fields(self._unpacked(frame.body)), f"the output of {name}")
        key = (self.frame.systems[frame.system or 0], frame.ordinal, frame.repeat, frame.failed)
        if key != (row.system, row.ordinal, row.repeat, row.failure is not None):
            raise ValueError(f"event {frame.seq} is filed under another key than its row has")
        return EncodedEvent(
            frame.kind,
            frame.head,
            frame.body,
            is_packed=True,
            system=row.system,
            ordinal=row.ordinal,
            repeat=row.repeat,
            failed=frame.failed,
            reused=row.reused,
        )

    def _checked(self, data: bytes) -> bytes:
        if self._room is not None:
            self._room.check(data)
        return data

    def _unpacked(self, body: bytes) -> codec.Buffer:
        return codec.unpack(body) if self._room is None else self._room.unpack(body)

    def changes(self) -> dict[str, object]:
        """Return what the run must say of what was lost; nothing of a whole one."""
        if self.frame.is_whole:
            return {}
        more = [f"{self._losses - _TOLD:,} more"] if self._losses > _TOLD else []
        text = f"Saved from a damaged store. Lost: {'; '.join(self._lost + more) or 'nothing'}."
        changes: dict[str, object] = {
            "notes": renewed(self.run.notes, [RunNote("SALVAGED", text)]),
        }
        events = max(0, self.frame.last_seq - self.events)
        examples = max(0, self.frame.examples - self.examples)
        if events or examples or not self.run.state.is_final:
            changes["state"] = RunState.FAILED
            changes["end_time"] = self.run.end_time or self.run.create_time
            changes["failure"] = Failure(
                "daemon",
                "SALVAGED",
                f"{events:,} events and {examples:,} examples were lost to damage. "
                "`cbench resume` makes lost rows again whose examples are there.",
            )
        return changes
