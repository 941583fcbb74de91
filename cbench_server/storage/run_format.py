"""Run format: one run in one file, without loss and without a database.

docs/run-format.md writes the layout down. A file is a mark with the version, then frames: the
run, its examples, its events, what was lost, and an end that shows that nothing is missing.
"""

import gzip
import hashlib
import struct
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

import msgspec

from cbench_server.errors import InvalidInput
from cbench_server.storage.import_room import NoRoom, Room

VERSION = 1
_MARK = b"cbench-run-"
_MARK_SIZE = len(_MARK) + 5
_HEADER = struct.Struct("<IBI")
_HEADER_SUM = struct.Struct("<I")
_MAX_FRAME = 1 << 30
_GZIP = b"\x1f\x8b"

END, RUN, EXAMPLE, EVENT, LOST = 0, 1, 2, 3, 4


class BadRunFile(InvalidInput):
    """A file is no run, or not all of one."""

    reason = "BAD_RUN_FILE"


class RunFrame(msgspec.Struct):
    """The run: what its table holds of it. `record` is the run itself, as MessagePack."""

    run_id: str
    request_id: str
    spec_digest: str
    state: str
    create_time: float
    end_time: float | None
    last_seq: int
    examples: int
    spool_complete: bool
    pinned: bool
    systems: list[str]
    """In the order of the numbers by which events know them."""
    labels: dict[str, str]
    record: bytes
    is_whole: bool = True
    """False where something was lost to damage; frames of LOST say what."""


class ExampleFrame(msgspec.Struct, array_like=True):
    """An example; `tokens` and `body` are as a store keeps them."""

    ordinal: int
    dataset: str
    index: int
    digest: str
    tokens: bytes
    body: bytes


class EventFrame(msgspec.Struct, array_like=True):
    """An event; `head` and `body` are as a store keeps them, and so is the time."""

    seq: int
    kind: int
    time: float
    system: int | None
    ordinal: int | None
    repeat: int | None
    failed: bool
    head: bytes
    body: bytes | None


class EndFrame(msgspec.Struct):
    """How many frames came before, and the SHA-256 of every byte of them, the mark included."""

    frames: int
    sha256: bytes


Frame = RunFrame | ExampleFrame | EventFrame | str
_KINDS: dict[type, int] = {RunFrame: RUN, ExampleFrame: EXAMPLE, EventFrame: EVENT, str: LOST}
_encoder = msgspec.msgpack.Encoder()
_decoders: dict[int, msgspec.msgpack.Decoder[Any]] = {
    kind: msgspec.msgpack.Decoder(type_) for type_, kind in _KINDS.items()
} | {END: msgspec.msgpack.Decoder(EndFrame)}


def encode_frames(frames: Iterable[Frame]) -> Iterator[bytes]:
    """Yield the bytes of a file, the end included."""
    digest = hashlib.sha256()
    mark = b"%s%04d\n" % (_MARK, VERSION)
    digest.update(mark)
    yield mark
    count = 0
    for frame in frames:
        data = _frame(_KINDS[type(frame)], frame)
        digest.update(data)
        yield data
        count += 1
    yield _frame(END, EndFrame(count, digest.digest()))


def _frame(kind: int, value: Frame | EndFrame) -> bytes:
    payload = _encoder.encode(value)
    header = _HEADER.pack(len(payload), kind, zlib.crc32(payload))
    return b"".join((header, _HEADER_SUM.pack(zlib.crc32(header)), payload))


def content_digest(frames: Iterable[Frame]) -> bytes:
    """Digest what of a run does not depend on where it is.

    A request id may belong to another run there, and pins are changed by those who use a store.
    """

    def everywhere() -> Iterator[Frame]:
        for frame in frames:
            if isinstance(frame, RunFrame):
                frame = msgspec.structs.replace(frame, request_id="", pinned=False)
            yield frame

    digest = hashlib.sha256()
    for part in encode_frames(everywhere()):
        digest.update(part)
    return digest.digest()


def compressed(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Compress a file as gzip does, part by part."""
    packer = zlib.compressobj(wbits=31)
    for part in parts:
        if data := packer.compress(part):
            yield data
    yield packer.flush()


def read_run_file(path: Path, room: Room | None = None) -> Iterator[Frame]:
    """Yield the frames of a file, compressed or not, each verified; raise `BadRunFile`.

    That the end is there and right is known only once all frames have been taken. Frames for which
    there is no room are refused before they are held.
    """
    try:
        with path.open("rb") as raw:
            is_packed = raw.read(2) == _GZIP
            raw.seek(0)
            file: IO[bytes] = cast(IO[bytes], gzip.GzipFile(fileobj=raw)) if is_packed else raw
            with _told(path):
                yield from _frames(file, room)
    except OSError as error:
        raise BadRunFile(f"cannot read {path}: {error.strerror or error}.") from error


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Name the file in what is said of it."""
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise damaged_file(path, str(error)) from error
    except _Damage as error:
        raise damaged_file(path, str(error)) from error
    except _Foreign as error:
        raise BadRunFile(f"{path} {error}") from error
    except NoRoom as error:
        raise too_large_file(path, error) from error


def damaged_file(path: Path | str, what: str) -> BadRunFile:
    """Say that a file is not what was written."""
    return BadRunFile(
        f"{path} is damaged ({what}); nothing of it was imported. Copy or export it again."
    )


def too_large_file(path: Path | str, why: NoRoom) -> BadRunFile:
    """Say that a file holds more than is read of one."""
    return BadRunFile(f"{path} is too large ({why}); nothing of it was imported.")


class _Damage(Exception):
    pass


class _Foreign(Exception):
    pass


def _frames(file: IO[bytes], room: Room | None) -> Iterator[Frame]:
    mark = file.read(_MARK_SIZE)
    version = mark[len(_MARK) : -1]
    if not mark.startswith(_MARK) or not version.isdigit():
        raise _Foreign("is not a run. Write one with: cbench export RUN --format run -o FILE")
    if int(version) > VERSION:
        raise _Foreign(
            f"was written by a newer cbench-server: its format is {int(version)}, this version "
            f"reads {VERSION}. Upgrade cbench-server."
        )
    digest = hashlib.sha256(mark)
    count = 0
    while True:
        header = _exactly(file, _HEADER.size)
        (total,) = _HEADER_SUM.unpack(_exactly(file, _HEADER_SUM.size))
        if zlib.crc32(header) != total:
            raise _Damage(f"the head of frame {count + 1} is not what was written")
        length, kind, payload_sum = _HEADER.unpack(header)
        if length > _MAX_FRAME or kind not in _decoders:
            raise _Damage(f"frame {count + 1} is of no known kind or length")
        if room is not None:
            room.check_size(length)
        payload = _exactly(file, length)
        if zlib.crc32(payload) != payload_sum:
            raise _Damage(f"frame {count + 1} is not what was written")
        if room is not None:
            room.check(payload)
        try:
            value = _decoders[kind].decode(payload)
        except msgspec.MsgspecError as error:
            raise _Damage(f"frame {count + 1}: {error}") from error
        if isinstance(value, EndFrame):
            if value.frames != count or value.sha256 != digest.digest():
                raise _Damage("frames are missing, or in another order")
            if file.read(1):
                raise _Damage("it goes on behind its end")
            return
        digest.update(header + _HEADER_SUM.pack(total) + payload)
        count += 1
        yield value


def _exactly(file: IO[bytes], size: int) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise _Damage("it ends early")
    return data
