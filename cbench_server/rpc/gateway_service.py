"""The Gateway service: processes that the daemon cannot dial attach to it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc

from cbench_client._gen.cbench.v1 import gateway_pb2, gateway_pb2_grpc
from cbench_server.errors import Forbidden, InvalidInput, ShuttingDown
from cbench_server.rpc.attachments import Attachment, Attachments
from cbench_server.runs.callers import audit, current_caller


class GatewayService(gateway_pb2_grpc.GatewayServicer):
    """Takes attachments in and keeps their streams going."""

    def __init__(self, attachments: Attachments) -> None:
        self._attachments = attachments
        self.is_closing = False

    async def Attach(
        self, request_iterator: AsyncIterator[gateway_pb2.AttachRequest], context: Any
    ) -> AsyncIterator[gateway_pb2.AttachResponse | bytes]:
        if self.is_closing:
            raise ShuttingDown("the daemon is shutting down; attach again when it is back.")
        hello = await _hello(request_iterator)
        _check_names(hello)
        attachment = await self._attachments.add(hello)
        offered: list[Any] = [*hello.systems, *hello.memory_systems, *hello.evaluators]
        names = [info.name for info in offered]
        audit("attach", f"attached {', '.join(names)}", names=names)
        reading = asyncio.create_task(_read(request_iterator, attachment))
        try:
            yield gateway_pb2.AttachResponse(
                welcome=gateway_pb2.Welcome(attachment_id=attachment.id)
            )
            while (message := await attachment.next_message()) is not None:
                yield message
            if not reading.done():
                await context.abort(grpc.StatusCode.UNAVAILABLE, "no sign of life; attach again.")
        finally:
            reading.cancel()
            await self._attachments.remove(attachment)


async def _hello(requests: AsyncIterator[gateway_pb2.AttachRequest]) -> gateway_pb2.Hello:
    async for request in requests:
        hello = request.hello
        if not request.HasField("hello") or not (
            hello.systems or hello.memory_systems or hello.evaluators
        ):
            break
        return hello
    raise InvalidInput("an attachment begins with a hello that offers something.")


def _check_names(hello: gateway_pb2.Hello) -> None:
    """Refuse names that are not listed with the token, and evaluators, which see references."""
    caller = current_caller()
    if caller.is_admin:
        return
    for info in (*hello.systems, *hello.memory_systems):
        if info.name not in caller.names:
            raise Forbidden(
                f'the token of "{caller.name}" may attach {", ".join(sorted(caller.names))}, and '
                f'not "{info.name}". Attach it under a name of the token, or get a token with: '
                f'cbench tokens create NAME --role attach --attach "{info.name}"'
            )
    if hello.evaluators:
        raise Forbidden(
            f'the evaluator "{hello.evaluators[0].name}" would be sent the expected answers, which '
            f'the token of "{caller.name}" does not open; only an admin can attach evaluators.'
        )


async def _read(requests: AsyncIterator[gateway_pb2.AttachRequest], attachment: Attachment) -> None:
    try:
        async for request in requests:
            attachment.resolve(request.results)
            if request.HasField("drain"):
                attachment.is_draining = True
    finally:
        attachment.close()
