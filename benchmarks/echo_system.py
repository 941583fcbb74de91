"""The echo that benchmarks call: `echo_system.py stream|unary DELAY PORT [LOG]`."""

import asyncio
import os
import sys
from typing import Any

import grpc.aio

from cbench_client import serve
from cbench_client._gen.cbench.v1 import system_pb2, system_pb2_grpc
from cbench_client.messages import convert


def answer(example: dict[str, Any]) -> dict[str, Any]:
    """The system under test, as the in-process baselines call it too."""
    return {**example, "response": example["question"]}


class Echo:
    name = "echo"
    version = "1"
    max_concurrency = 256

    def __init__(self, delay: float, log: str) -> None:
        self._delay = delay
        self._log = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND) if log else None

    async def process(self, example: dict[str, Any]) -> dict[str, Any]:
        if self._log is not None:
            os.write(self._log, f"{example['id']}\n".encode())
        if self._delay:
            await asyncio.sleep(self._delay)
        return answer(example)


class UnaryEcho(system_pb2_grpc.SystemServicer):
    """Serves Describe and Process only, as a minimal system in any language would."""

    def __init__(self, delay: float) -> None:
        self._delay = delay

    async def Describe(self, request: Any, context: Any) -> Any:  # noqa: N802 - the contract's
        return system_pb2.SystemDescribeResponse(
            systems=[system_pb2.SystemInfo(name="echo", version="1", max_concurrency=256)]
        )

    async def Process(self, request: Any, context: Any) -> Any:  # noqa: N802 - the contract's
        if self._delay:
            await asyncio.sleep(self._delay)
        response = system_pb2.ProcessResponse()
        example = convert.example_from_proto(request.example)
        convert.processed_to_proto(answer(example), example, response)
        return response


async def _serve_unary(delay: float, port: str) -> None:
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", 1 << 27)])
    system_pb2_grpc.add_SystemServicer_to_server(UnaryEcho(delay), server)
    chosen = server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    print(f"cbench|1|tcp|127.0.0.1:{chosen}", flush=True)
    await server.wait_for_termination()


if __name__ == "__main__":
    mode, delay, port, *rest = sys.argv[1:]
    if mode == "unary":
        asyncio.run(_serve_unary(float(delay), port))
    else:
        serve(Echo(float(delay), rest[0] if rest else ""), f"127.0.0.1:{port}")
