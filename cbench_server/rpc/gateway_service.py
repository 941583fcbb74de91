"""The Gateway service: processes that the daemon cannot dial attach to it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from cbench_client._gen.cbench.v1 import gateway_pb2, gateway_pb2_grpc
from cbench_server.errors import InvalidInput, ShuttingDown
from cbench_server.rpc.attachments import Attachment, Attachments


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
        attachment = await self._attachments.add(await _hello(request_iterator))
        reading = asyncio.create_task(_read(request_iterator, attachment))
        try:
            yield gateway_pb2.AttachResponse(
                welcome=gateway_pb2.Welcome(attachment_id=attachment.id)
            )
            while (message := await attachment.next_message()) is not None:
                yield message
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


async def _read(requests: AsyncIterator[gateway_pb2.AttachRequest], attachment: Attachment) -> None:
    try:
        async for request in requests:
            attachment.resolve(request.results)
            if request.HasField("drain"):
                attachment.is_draining = True
    finally:
        attachment.close()
