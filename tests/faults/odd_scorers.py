"""An evaluator with odd scores, and a system with a large answer: `odd_scorers.py scores|large`."""

import asyncio
import sys
from typing import Any

import grpc

from cbench_client._gen.cbench.v1 import evaluator_pb2, system_pb2
from tests.faults import junk

SCORES = (float("nan"), float("inf"), float("-inf"), -0.0, 5e-324, 1.7e308, 1.7e308)
LARGE = "x" * 140_000_000


async def serve_scores() -> None:
    async def describe(_request: bytes, _context: Any) -> bytes:
        response = evaluator_pb2.EvaluatorDescribeResponse()
        response.evaluators.add(name="odd")
        return response.SerializeToString()

    async def score(data: bytes, _context: Any) -> bytes:
        number = int(evaluator_pb2.ScoreRequest.FromString(data).original.id.text[1:])
        return evaluator_pb2.ScoreResponse(scores={"odd": SCORES[number]}).SerializeToString()

    await junk.serve(
        "cbench.v1.Evaluator",
        {
            "Describe": grpc.unary_unary_rpc_method_handler(describe),
            "Score": grpc.unary_unary_rpc_method_handler(score),
        },
    )


async def serve_large() -> None:
    async def describe(_request: bytes, _context: Any) -> bytes:
        response = system_pb2.SystemDescribeResponse()
        response.systems.add(name="large", max_concurrency=2)
        return response.SerializeToString()

    async def process(data: bytes, _context: Any) -> bytes:
        request = system_pb2.ProcessRequest.FromString(data)
        response = system_pb2.ProcessResponse()
        response.fields["response"].string_value = (
            LARGE if request.example.id.text == "e3" else "ok"
        )
        return response.SerializeToString()

    await junk.serve(
        "cbench.v1.System",
        {
            "Describe": grpc.unary_unary_rpc_method_handler(describe),
            "Process": grpc.unary_unary_rpc_method_handler(process),
        },
    )


if __name__ == "__main__":
    asyncio.run({"scores": serve_scores, "large": serve_large}[sys.argv[1]]())
