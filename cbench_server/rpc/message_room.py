"""Room for messages of clients: few are read at once, and a large one is held in it until answered.

How large a message is nobody knows before it is there. So whoever sends many large ones at once, or
begins many and sends nothing, waits for its own; others have room of their own.

What a call sends is read to its end: gRPC keeps the last message of a call whose end nobody has
asked for, until the connection closes.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc.aio

from cbench_server.errors import InvalidInput
from cbench_server.limits import LARGE_MESSAGE, MAX_MESSAGES_AT_ONCE, MESSAGE_SECONDS
from cbench_server.scoring.shares import FairPermits

_OURS = "/cbench.v1."
# They are large as a whole, whatever their parts are.
_LARGE_STREAMS = frozenset({"/cbench.v1.Bench/UploadExamples", "/cbench.v1.Bench/Import"})


@dataclass(frozen=True, slots=True)
class Sized:
    """A message as it was read; asking it for its size afterwards would pack it again."""

    message: Any
    size: int


def sized(deserialize: Callable[[bytes], Any]) -> Callable[[bytes], Sized]:
    """Read messages by `deserialize`, and keep how large they are."""
    return lambda data: Sized(deserialize(data), len(data))


class MessageRoom:
    """Reads what a call asks; belongs to one event loop."""

    def __init__(self) -> None:
        self._permits = FairPermits(MAX_MESSAGES_AT_ONCE, spare=MAX_MESSAGES_AT_ONCE)

    @asynccontextmanager
    async def question(
        self, method: str, handler: Any, context: Any, who: str
    ) -> AsyncIterator[Any]:
        """Give what a call asks, a message or all that come, for as long as it is answered."""
        is_one = not handler.request_streaming
        async with AsyncExitStack() as place:
            if method in _LARGE_STREAMS or (is_one and method.startswith(_OURS)):
                await place.enter_async_context(self._permits.one(who))
            if not is_one:
                yield _each(context)
                return
            read = await _only(context)
            if read.size < LARGE_MESSAGE:
                await place.aclose()
            yield read.message


async def _each(context: Any) -> AsyncIterator[Any]:
    while True:
        # No name stands for a message while somebody else works on it.
        read = [await context.read()]
        if read[0] is grpc.aio.EOF:
            return
        yield read.pop()


async def _only(context: Any) -> Sized:
    try:
        async with asyncio.timeout(MESSAGE_SECONDS):
            read = await context.read()
            if read is grpc.aio.EOF:
                raise InvalidInput("the call ended without a message.")
            if await context.read() is not grpc.aio.EOF:
                raise InvalidInput("the call sent more than the one message it may have.")
    except TimeoutError as error:
        raise InvalidInput(
            f"the call did not send its message, and end it, within {MESSAGE_SECONDS} s."
        ) from error
    assert isinstance(read, Sized)
    return read
