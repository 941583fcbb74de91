"""Junk: messages that are almost right, and peers that send them.

`python junk.py system|evaluator|model SEED` serves one that answers one call in five with junk.
"""

import asyncio
import os
import random
import sys
from collections.abc import AsyncIterator, Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import Message

from cbench_client._gen.cbench.v1 import evaluator_pb2, system_pb2

_ODD_TEXTS = ("", "\0", "../../etc/passwd", "é" * 300, "e\u0301", "x" * 20_000, "\u202e", "null")
_ODD_NUMBERS = (0, -1, 1, 2**31 - 1, -(2**31), 2**31, 2**63 - 1, -(2**63))
_ODD_FLOATS = (float("nan"), float("inf"), float("-inf"), -0.0, 5e-324, 1.7e308)


def broken(chance: random.Random, message: bytes) -> bytes:
    """Return bytes like those of a message: cut off, flipped, doubled, or none at all."""
    kind = chance.randrange(5)
    if kind == 0 or not message:
        return chance.randbytes(chance.randint(1, 60))
    if kind == 1:
        return message[: chance.randrange(len(message))]
    if kind == 2:
        return message + message
    place = chance.randrange(len(message))
    if kind == 3:
        return (
            message[:place]
            + bytes([message[place] ^ 1 << chance.randrange(8)])
            + message[place + 1 :]
        )
    return message[:place] + chance.randbytes(3) + message[place:]


def oddly_filled(chance: random.Random, message: Message, depth: int = 4) -> None:
    """Put odd values into some fields of a message, and of those within it."""
    for field in message.DESCRIPTOR.fields:
        if chance.random() < 0.5 or depth == 0:
            continue
        is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
        if field.message_type is not None and not is_map:
            if field.is_repeated:
                for _ in range(chance.randrange(3)):
                    oddly_filled(chance, getattr(message, field.name).add(), depth - 1)
            else:
                inner = getattr(message, field.name)
                inner.SetInParent()
                oddly_filled(chance, inner, depth - 1)
        elif not is_map:
            _set(chance, message, field)


def _set(chance: random.Random, message: Message, field: Any) -> None:
    value: Any
    if field.cpp_type == field.CPPTYPE_STRING:
        value = chance.choice(_ODD_TEXTS)
        value = value.encode() if field.type == field.TYPE_BYTES else value
    elif field.cpp_type in (field.CPPTYPE_DOUBLE, field.CPPTYPE_FLOAT):
        value = chance.choice(_ODD_FLOATS)
    elif field.cpp_type == field.CPPTYPE_BOOL:
        value = chance.random() < 0.5
    else:
        value = chance.choice(_ODD_NUMBERS)
    try:
        if field.is_repeated:
            getattr(message, field.name).append(value)
        else:
            setattr(message, field.name, value)
    except ValueError:
        pass  # The number has no room in the field.


def junk(chance: random.Random, message: Message) -> bytes:
    """Return a message that is broken or odd."""
    if chance.random() < 0.5:
        return broken(chance, message.SerializeToString())
    odd = type(message)()
    odd.CopyFrom(message)
    oddly_filled(chance, odd)
    return odd.SerializeToString()


def _is_culprit(example_id: str) -> bool:
    return int(example_id[1:]) % 5 == 3


async def serve(service: str, handlers: dict[str, Any]) -> None:
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(f"cbench|1|tcp|127.0.0.1:{port}", flush=True)
    await server.wait_for_termination()


async def serve_system(chance: random.Random) -> None:
    def answer(request: Any) -> system_pb2.ProcessResponse:
        response = system_pb2.ProcessResponse()
        response.fields["response"].string_value = request.example.id.text
        return response

    async def describe(_request: bytes, _context: Any) -> bytes:
        response = system_pb2.SystemDescribeResponse()
        info = response.systems.add(name="junk", max_concurrency=8)
        info.capabilities.append(system_pb2.CAPABILITY_STREAM)
        return response.SerializeToString()

    async def process(data: bytes, _context: Any) -> bytes:
        request = system_pb2.ProcessRequest.FromString(data)
        if _is_culprit(request.example.id.text):
            return junk(chance, answer(request))
        return answer(request).SerializeToString()

    async def stream(requests: AsyncIterator[bytes], _context: Any) -> AsyncIterator[bytes]:
        async for message in requests:
            for call in system_pb2.ProcessStreamRequest.FromString(message).calls:
                outcome = system_pb2.ProcessOutcome(call_id=call.request.call_id)
                outcome.response.CopyFrom(answer(call.request))
                reply = system_pb2.ProcessStreamResponse(outcomes=[outcome])
                if _is_culprit(call.request.example.id.text):
                    # Its own id, so that no other call is answered by it.
                    odd = system_pb2.ProcessOutcome(call_id=call.request.call_id)
                    oddly_filled(chance, odd.response)
                    yield system_pb2.ProcessStreamResponse(outcomes=[odd]).SerializeToString()
                else:
                    yield reply.SerializeToString()

    await serve(
        "cbench.v1.System",
        {
            "Describe": grpc.unary_unary_rpc_method_handler(describe),
            "Process": grpc.unary_unary_rpc_method_handler(process),
            "ProcessStream": grpc.stream_stream_rpc_method_handler(stream),
        },
    )


async def serve_evaluator(chance: random.Random) -> None:
    async def describe(_request: bytes, _context: Any) -> bytes:
        response = evaluator_pb2.EvaluatorDescribeResponse()
        response.evaluators.add(name="junk")
        return response.SerializeToString()

    async def score(data: bytes, _context: Any) -> bytes:
        request = evaluator_pb2.ScoreRequest.FromString(data)
        response = evaluator_pb2.ScoreResponse()
        response.scores["fine"] = 1.0
        if _is_culprit(request.original.id.text):
            return broken(chance, response.SerializeToString())
        return response.SerializeToString()

    await serve(
        "cbench.v1.Evaluator",
        {
            "Describe": grpc.unary_unary_rpc_method_handler(describe),
            "Score": grpc.unary_unary_rpc_method_handler(score),
        },
    )


class Model(BaseHTTPRequestHandler):
    """A chat model, of sorts."""

    protocol_version = "HTTP/1.1"
    chance = random.Random()
    sound = b'{"choices": [{"message": {"content": "YES"}}]}'

    def do_GET(self) -> None:
        self._reply(200, b'{"data": []}')

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers["content-length"]))
        if b"Paris 3" not in asked:
            self._reply(200, self.sound)
            return
        kind = self.chance.randrange(6)
        if kind == 0:
            self._reply(200, self.chance.randbytes(200))
        elif kind == 1:
            self._reply(200, self.sound[: self.chance.randrange(len(self.sound))])
        elif kind == 2:
            self._reply(200, b"[" * 100_000)
        elif kind == 3:
            self._reply(200, b'{"choices": [{"message": {"content": {"a": [1e999]}}}]}')
        elif kind == 4:
            self._reply(299, b"")
        else:
            self.wfile.write(self.chance.randbytes(300))
            self.close_connection = True

    def _reply(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def serve_model(chance: random.Random) -> None:
    Model.chance = chance
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    server.daemon_threads = True
    print(f"cbench|1|tcp|127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever(0.05)


SERVED: dict[str, Callable[[random.Random], Any]] = {
    "system": serve_system,
    "evaluator": serve_evaluator,
}

if __name__ == "__main__":
    what, seed = sys.argv[1:]
    os.environ["CBENCH_HANDSHAKE"] = "1"
    if what == "model":
        serve_model(random.Random(seed))
    else:
        asyncio.run(SERVED[what](random.Random(seed)))
