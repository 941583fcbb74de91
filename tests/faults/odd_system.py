"""A system that says what no SDK would let it: `python odd_system.py LOG`. Each call is logged."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio

from cbench_client._gen.cbench.v1 import system_pb2

LARGEST, LEAST = 2**63 - 1, -(2**63)


def answer(call: system_pb2.ProcessCall) -> system_pb2.ProcessOutcome:
    """Answer by the number in the example's id."""
    outcome = system_pb2.ProcessOutcome(call_id=call.request.call_id)
    number = int(call.request.example.id.text[1:])
    if number in (5, 6, 7):
        outcome.failure.reason, outcome.failure.retryable = "ODD", True
        delay = outcome.failure.retry_delay
        delay.seconds, delay.nanos = {5: (0, -500_000_000), 6: (0, 1), 7: (LEAST, 0)}[number]
        return outcome
    outcome.response.fields["response"].string_value = "ok"
    if number == 1:
        outcome.response.usage.compute_time.seconds = LARGEST
    if number == 2:
        outcome.response.usage.compute_time.seconds = LEAST
        outcome.response.usage.total_tokens = LARGEST
    if number == 3:
        outcome.response.handler_time.seconds = LARGEST
    return outcome


async def main(log: str) -> None:
    calls_log = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND)

    async def describe(_request: bytes, _context: Any) -> bytes:
        response = system_pb2.SystemDescribeResponse()
        info = response.systems.add(name="odd", max_concurrency=8)
        info.capabilities.append(system_pb2.CAPABILITY_STREAM)
        return response.SerializeToString()

    async def stream(requests: AsyncIterator[bytes], _context: Any) -> AsyncIterator[bytes]:
        async for message in requests:
            calls = system_pb2.ProcessStreamRequest.FromString(message).calls
            for call in calls:
                os.write(calls_log, f"{call.request.example.id.text}\n".encode())
            outcomes = [answer(call) for call in calls]
            yield system_pb2.ProcessStreamResponse(outcomes=outcomes).SerializeToString()

    async def process(request: bytes, context: Any) -> bytes:
        call = system_pb2.ProcessCall(request=system_pb2.ProcessRequest.FromString(request))
        os.write(calls_log, f"{call.request.example.id.text}\n".encode())
        outcome = answer(call)
        if outcome.HasField("failure"):
            await context.abort(
                grpc.StatusCode.UNAVAILABLE,
                "odd",
                (("cbench-failure-bin", outcome.failure.SerializeToString()),),
            )
        return outcome.response.SerializeToString()

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
    asyncio.run(main(sys.argv[1]))
