"""A system on gRPC's own server, with none of its settings changed: `HOW LOG SECONDS [GATE]`.

With a gate it keeps all calls after the first five until that file is there.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio

from cbench_client._gen.cbench.v1 import system_pb2

ANSWERED = 5


async def main(how: str, log: str, seconds: float, gate: str = "") -> None:
    calls_log = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    answered: list[int] = []

    async def answer(request: system_pb2.ProcessRequest) -> system_pb2.ProcessResponse:
        os.write(calls_log, f"{request.example.id.text}\n".encode())
        await asyncio.sleep(seconds)
        answered.append(0)
        while gate and len(answered) > ANSWERED and not os.path.exists(gate):
            await asyncio.sleep(0.02)
        response = system_pb2.ProcessResponse()
        response.fields["response"].string_value = "ok"
        return response

    async def describe(_request: bytes, _context: Any) -> bytes:
        response = system_pb2.SystemDescribeResponse()
        info = response.systems.add(name="stock", max_concurrency=8)
        if how == "stream":
            info.capabilities.append(system_pb2.CAPABILITY_STREAM)
        return response.SerializeToString()

    async def process(request: bytes, _context: Any) -> bytes:
        response = await answer(system_pb2.ProcessRequest.FromString(request))
        return response.SerializeToString()

    async def stream(requests: AsyncIterator[bytes], _context: Any) -> AsyncIterator[bytes]:
        outcomes: asyncio.Queue[bytes] = asyncio.Queue()

        async def work(call: system_pb2.ProcessCall) -> None:
            outcome = system_pb2.ProcessOutcome(call_id=call.request.call_id)
            outcome.response.CopyFrom(await answer(call.request))
            reply = system_pb2.ProcessStreamResponse(outcomes=[outcome])
            outcomes.put_nowait(reply.SerializeToString())

        async def read() -> None:
            async for message in requests:
                for call in system_pb2.ProcessStreamRequest.FromString(message).calls:
                    tasks.append(asyncio.create_task(work(call)))

        tasks: list[asyncio.Task[None]] = [asyncio.create_task(read())]
        while True:
            yield await outcomes.get()

    handlers = {
        "Describe": grpc.unary_unary_rpc_method_handler(describe),
        "Process": grpc.unary_unary_rpc_method_handler(process),
        "ProcessStream": grpc.stream_stream_rpc_method_handler(stream),
    }
    server = grpc.aio.server()
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("cbench.v1.System", handlers),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(f"cbench|1|tcp|127.0.0.1:{port}", flush=True)
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3]), *sys.argv[4:]))
