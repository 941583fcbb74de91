"""Systems for end-to-end tests: `python systems.py BEHAVIOUR PORT [ARGUMENT...]`.

Each is a small real server. The misbehaving ones do what no SDK would let them.
"""

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import grpc
import grpc.aio

from cbench_client import RemoteFailure, serve
from cbench_client._gen.cbench.v1 import system_pb2


class Echo:
    """Answers with the question; notes each call in a file, if given one.

    After so many answers, if a number is given, it keeps all further calls until the gate, a
    file, is there.
    """

    name = "echo"
    version = "1"
    max_concurrency: int | None = 16

    def __init__(
        self, log: str = "", delay: str = "0", answers: str = "inf", gate: str = ""
    ) -> None:
        self._log = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND) if log else None
        self._delay = float(delay)
        self._answers = float(answers)
        self._gate = gate

    async def process(
        self, example: dict[str, Any], options: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        if self._log is not None:
            os.write(self._log, f"{example['id']}\n".encode())
        if self._delay:
            await asyncio.sleep(self._delay)
        self._answers -= 1
        while self._answers < 0 and not os.path.exists(self._gate):
            await asyncio.sleep(0.02)
        return {**example, "response": example.get("question", "")}


class Silent(Echo):
    """Never answers, and does not say how many calls it takes at a time."""

    name = "silent"
    max_concurrency = None

    def __init__(self, log: str) -> None:
        super().__init__(log, delay="3600")


class Charges(Echo):
    """Says what each answer costs."""

    name = "charges"

    async def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return {**await super().process(example), "api_usage": {"total_tokens": 1}}


class Quotes:
    """Answers with the context in brackets, so that the answer is none of the fields given."""

    name = "quotes"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return {**example, "response": f"<{example['context']}>"}


class Shortener:
    """Returns half the context and no response."""

    name = "shortener"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return {**example, "context": example["context"][: len(example["context"]) // 2]}


class SlowFirst:
    """Takes few calls at a time, and its time for some examples: the first and the fourth."""

    name = "slow-first"

    def __init__(self, seconds: str, places: str = "1", slow: str = "e0,e3") -> None:
        """Without a number of places it has one, and does not say so."""
        self._seconds = float(seconds)
        self._slow = slow.split(",")
        self.max_concurrency = int(places) if places else None
        place: AbstractContextManager[Any] = nullcontext() if places else threading.Lock()
        self._place = place

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        with self._place:
            if example["id"] in self._slow:
                time.sleep(self._seconds)
        return {**example, "response": example["question"]}


class Spy:
    """Answers with the names of the fields it was given."""

    name = "spy"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return {**example, "response": " ".join(sorted(example))}


class Unreliable:
    """Misbehaves by the number in the example's id, one way each."""

    name = "unreliable"
    version = "1"
    max_concurrency = 16

    async def process(self, example: dict[str, Any]) -> Any:
        number = int(example["id"][1:])
        answer = {**example, "response": example["question"]}
        if number % 50 == 7:
            await asyncio.sleep(3600)
        if number % 50 == 13:
            raise ValueError("this example is too hard")
        if number % 50 == 19:
            return {**answer, "not_a_number": float("nan"), "infinite": float("inf")}
        if number % 50 == 23:
            return "not a dict"
        if number % 50 == 31:
            raise RemoteFailure("come back later", reason="BUSY", retryable=False)
        return answer


class Lengthy:
    """Answers one example with 40 million letters."""

    name = "lengthy"

    async def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return {**example, "response": "x" * (40_000_000 if example["id"] == "e1" else 1)}


class Poison:
    """Dies of one example, every time."""

    name = "poison"

    async def process(self, example: dict[str, Any]) -> dict[str, Any]:
        if example["id"] == "e5":
            os._exit(1)
        return {**example, "response": "ok"}


class Mortal:
    """Dies of one example after a while, the first time; the next time it answers, or hangs."""

    name = "mortal"

    def __init__(self, seconds: str, once: str, then: str) -> None:
        """`once` is a file by which it knows that it has died."""
        self._seconds, self._once, self._hangs = float(seconds), once, then == "hangs"

    async def process(self, example: dict[str, Any]) -> dict[str, Any]:
        if example["id"] == "e3":
            if not os.path.exists(self._once):
                await asyncio.sleep(self._seconds)
                open(self._once, "x").close()
                os._exit(1)
            await asyncio.sleep(3600 if self._hangs else 0)
        return {**example, "response": "ok"}


class Full:
    """Says it is full when more than two calls are in flight."""

    name = "full"
    max_concurrency = 32

    def __init__(self) -> None:
        self._in_flight = 0

    async def process(self, example: dict[str, Any]) -> dict[str, Any]:
        self._in_flight += 1
        try:
            if self._in_flight > 2:
                raise RemoteFailure("full", reason="RESOURCE_EXHAUSTED", retryable=True)
            await asyncio.sleep(0.005)
            return {**example, "response": "ok"}
        finally:
            self._in_flight -= 1


Outcome = Callable[[system_pb2.ProcessCall], bytes]


class WordCount:
    """An evaluator: the words of the response."""

    name = "word-count"
    version = "1"
    scores = ("word_count",)

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        return {"word_count": float(len(str(processed.get("response")).split()))}


def _outcome(call: system_pb2.ProcessCall) -> bytes:
    outcome = system_pb2.ProcessOutcome(call_id=call.request.call_id)
    outcome.response.fields["response"].string_value = "ok"
    return outcome.SerializeToString()


def _batch(outcomes: list[bytes]) -> bytes:
    batch = b""
    for outcome in outcomes:
        assert len(outcome) < 128
        batch += b"\x0a" + bytes([len(outcome)]) + outcome
    return batch


def _number(call: system_pb2.ProcessCall) -> int:
    return int(call.request.example.id.text[1:])


def _invalid_utf8(call: system_pb2.ProcessCall) -> bytes:
    if _number(call) % 10 == 4:
        return _outcome(call).replace(b"ok", b"\xff\xfe")
    return _outcome(call)


async def _raw(port: int, answer: Callable[[list[system_pb2.ProcessCall]], list[bytes]]) -> None:
    """Serve ProcessStream by hand, sending whatever bytes `answer` makes of each message."""

    async def describe(_request: bytes, _context: Any) -> bytes:
        response = system_pb2.SystemDescribeResponse()
        info = response.systems.add(name="raw", max_concurrency=16)
        info.capabilities.append(system_pb2.CAPABILITY_STREAM)
        return response.SerializeToString()

    async def process(request: bytes, context: Any) -> bytes:
        call = system_pb2.ProcessCall(request=system_pb2.ProcessRequest.FromString(request))
        outcome = system_pb2.ProcessOutcome()
        raw = answer([call])[0]
        if raw == b"close":
            await context.abort(grpc.StatusCode.UNAVAILABLE, "closed")
        try:
            outcome.ParseFromString(raw[2:])
        except Exception:
            return b"\xff\xff\xff"
        return outcome.response.SerializeToString()

    async def stream(requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        async for message in requests:
            calls = list(system_pb2.ProcessStreamRequest.FromString(message).calls)
            for reply in answer(calls):
                if reply == b"close":
                    return
                yield reply

    handlers = {
        "Describe": grpc.unary_unary_rpc_method_handler(describe),
        "Process": grpc.unary_unary_rpc_method_handler(process),
        "ProcessStream": grpc.stream_stream_rpc_method_handler(stream),
    }
    server = grpc.aio.server()
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("cbench.v1.System", handlers),)
    )
    chosen = server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    print(f"cbench|1|tcp|127.0.0.1:{chosen}", flush=True)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()
    await server.stop(1)


class Closer:
    """Ends the stream after every fifth message, with calls unanswered."""

    def __init__(self) -> None:
        self._messages = 0

    def __call__(self, calls: list[system_pb2.ProcessCall]) -> list[bytes]:
        self._messages += 1
        replies = [_batch([_outcome(call) for call in calls])]
        return [b"close"] if self._messages % 5 == 0 else replies


RAW: dict[str, Callable[[], Callable[[list[system_pb2.ProcessCall]], list[bytes]]]] = {
    "invalid-utf8": lambda: lambda calls: [_batch([_invalid_utf8(call) for call in calls])],
    "garbage": lambda: (
        lambda calls: [
            b"\xff\xff\xff\xff"
            if any(_number(call) == 3 for call in calls)
            else _batch([_outcome(call) for call in calls])
        ]
    ),
    "closer": Closer,
}
SERVED: dict[str, Callable[..., Any]] = {
    kind.name: kind
    for kind in (
        Echo,
        Silent,
        Charges,
        Quotes,
        Shortener,
        SlowFirst,
        Spy,
        Unreliable,
        Lengthy,
        Poison,
        Mortal,
        Full,
        WordCount,
    )
}

if __name__ == "__main__":
    behaviour, port, *arguments = sys.argv[1:]
    if behaviour in RAW:
        asyncio.run(_raw(int(port), RAW[behaviour]()))
    else:
        os.environ["CBENCH_HANDSHAKE"] = "1"
        serve(SERVED[behaviour](*arguments), f"127.0.0.1:{port}")
