"""Codec of events, runs and examples: to bytes and back."""

import zlib
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from cbench_server.errors import Unencodable
from cbench_server.events import RowScored, RunAccepted, RunFinished, StateChanged, StoredEvent
from cbench_server.results import EvalRow
from cbench_server.runs.store import SpooledExample
from cbench_server.spec import Run
from cbench_server.texts.plain import blame, encode_fields, plain_form, require_plain

Buffer = bytes | memoryview

ACCEPTED, STATE, ROW, FINISHED = 1, 2, 3, 4

# Compressing less takes longer than writing it.
_COMPRESS_OVER = 4096
_PLAIN, _ZLIB = b"\0", b"\1"


@dataclass(slots=True)
class EncodedEvent:
    """An event on its way to the file. `body` is what a system returned, not yet packed."""

    kind: int
    head: bytes
    body: bytes | None = None
    is_packed: bool = False
    system: str = ""
    ordinal: int = 0
    repeat: int = 0
    failed: bool = False
    reused: bool = False

    @property
    def size(self) -> int:
        """Bytes it holds in memory."""
        return len(self.head) + len(self.body or b"")

    def pack_body(self) -> None:
        """Compress the body, unless that is done."""
        if self.body is not None and not self.is_packed:
            self.body = pack(self.body)
            self.is_packed = True


def encode_event(event: StoredEvent) -> EncodedEvent:
    """Encode an event, or raise `Unencodable` naming the field that has no stored form."""
    if isinstance(event, RowScored):
        return _encode_row(event.row, event.packed)
    if isinstance(event, StateChanged):
        return EncodedEvent(STATE, encode_fields(asdict(event)))
    kind = ACCEPTED if isinstance(event, RunAccepted) else FINISHED
    return EncodedEvent(kind, encode_run(event.run))


def decode_event(kind: int, head: bytes, body: Buffer | None) -> StoredEvent:
    """Decode what `encode_event` made."""
    if kind == ROW:
        return RowScored(decode_row(head, body))
    if kind == STATE:
        return _state_decoder.decode(head)
    if kind == ACCEPTED:
        return RunAccepted(decode_run(head))
    if kind == FINISHED:
        return RunFinished(decode_run(head))
    raise ValueError(f"its kind {kind} is unknown")


# A head leaves out what has its default value, and is decoded as an EvalRow,
# so that a field added to EvalRow later reads as its default in old rows.
_FREE_FIELDS = ("metadata", "details", "usage", "reader_usage")

_encoder = msgspec.msgpack.Encoder(enc_hook=plain_form)
_row_decoder = msgspec.msgpack.Decoder(EvalRow)
_run_decoder = msgspec.msgpack.Decoder(Run)
_state_decoder = msgspec.msgpack.Decoder(StateChanged)
_any_decoder = msgspec.msgpack.Decoder()


def _encode_row(row: EvalRow, packed: bytes | None) -> EncodedEvent:
    if row.metadata or row.details or row.usage or row.reader_usage:
        for name in _FREE_FIELDS:
            if value := getattr(row, name):
                require_plain(value, f"{name}.")
    # The head is the row without its output, which is set aside while it is encoded.
    processed, row.processed = row.processed, None
    try:
        head = _encoder.encode(row)
    except (OverflowError, UnicodeEncodeError, Unencodable) as error:
        raise blame(asdict(row), "", error) from error
    finally:
        row.processed = processed
    body = packed
    if packed is None and processed is not None:
        carried = row.carried
        own = {name: value for name, value in processed.items() if name not in carried}
        body = encode_fields(own, "processed.")
    failed = row.failure is not None
    return EncodedEvent(
        ROW, head, body, packed is not None, row.system, row.ordinal, row.repeat, failed, row.reused
    )


def decode_row(head: bytes, body: Buffer | None) -> EvalRow:
    """Decode a row; without a body it comes without its processed output.

    With one, the carried fields are still to be filled in from the original.
    """
    row = _row_decoder.decode(head)
    if body is not None:
        row.processed = decode_fields(body)
    return row


def encode_run(run: Run) -> bytes:
    """Encode a run with its spec."""
    return encode_fields(asdict(run), "run.")


def decode_run(record: bytes) -> Run:
    """Decode what `encode_run` made."""
    return _run_decoder.decode(record)


def decode_fields(data: Buffer) -> dict[str, Any]:
    """Decode an example, a processed output or token counts."""
    decoded: dict[str, Any] = _any_decoder.decode(data)
    return decoded


def pack_example(spooled: SpooledExample) -> bytes:
    """Encode and compress an example, or raise `Unencodable` naming its field."""
    return pack(encode_fields(spooled.example))


def pack(data: bytes) -> bytes:
    """Compress what is long enough to gain by it."""
    if len(data) > _COMPRESS_OVER:
        compressed = zlib.compress(data, 1)
        if len(compressed) < len(data):
            return _ZLIB + compressed
    return _PLAIN + data


def is_compressed(packed: bytes) -> bool:
    """Tell whether `pack` found that it pays to compress."""
    return packed[:1] == _ZLIB


def unpack(packed: bytes) -> Buffer:
    """Undo `pack`, or raise ValueError."""
    data = memoryview(packed)[1:]
    try:
        return zlib.decompress(data) if is_compressed(packed) else data
    except zlib.error as error:
        raise ValueError(str(error)) from error
