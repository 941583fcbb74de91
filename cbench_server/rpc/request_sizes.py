"""Requests that are too large for the event loop to parse and to look through."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import DecodeError

from cbench_client.messages.parts import check_parts
from cbench_server.limits import MAX_REQUEST_BYTES, MAX_REQUEST_PARTS

# What is shorter cannot have many more parts than that.
_SMALL = 32 * 1024


@dataclass(frozen=True)
class TooLarge:
    """Stands for a request that is not parsed, and says why."""

    why: str


def bounded(deserialize: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    """Read requests by `deserialize`, but for those which are too large."""

    def read(data: bytes) -> Any:
        if len(data) > MAX_REQUEST_BYTES:
            return TooLarge(
                f"the request takes {len(data):,} bytes, and at most {MAX_REQUEST_BYTES:,} are "
                "read. Give examples, predictions and labels as uploads."
            )
        if len(data) > _SMALL:
            try:
                check_parts(data, deserialize(b"").DESCRIPTOR, MAX_REQUEST_PARTS)
            except DecodeError as error:
                return TooLarge(f"the request is not read: {error}.")
        return deserialize(data)

    return read
