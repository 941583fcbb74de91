"""Calls over one stream or one attachment, whose outcomes come back in any order."""

import asyncio
import functools
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import grpc
import grpc.aio

from cbench_client._gen.cbench.v1 import evaluator_pb2, gateway_pb2, system_pb2
from cbench_server.conformance.messages import METHODS, Facts, failure_facts
from cbench_server.conformance.outcomes import (
    EOF,
    UNTRACED,
    Broken,
    Pending,
    Trace,
    answer_facts,
    code_for,
    decoded,
)


class Waiting:
    """Calls that wait for their outcomes, found by id."""

    def __init__(self) -> None:
        self._calls: defaultdict[str, list[tuple[asyncio.Future[Facts], str, Any]]]
        self._calls = defaultdict(list)

    def add(self, call_id: str, kind: str, request: Any) -> "asyncio.Future[Facts]":
        """Wait for an outcome of `call_id`; several may wait for the same."""
        future: asyncio.Future[Facts] = asyncio.get_running_loop().create_future()
        self._calls[call_id].append((future, kind, request))
        return future

    def forget(self, call_id: str, future: "asyncio.Future[Facts]") -> None:
        """Stop waiting."""
        self._calls[call_id] = [each for each in self._calls[call_id] if each[0] is not future]

    def deliver(self, outcome: Any, parts: dict[str, str]) -> None:
        """Give an outcome to the call that waits for it; `parts` maps its fields to kinds."""
        waiting = self._calls[outcome.call_id]
        if not waiting:
            return
        field = outcome.WhichOneof("result")
        is_refusal = field == "failure" and outcome.failure.reason == "ALREADY_EXISTS"
        # Of two calls with one id, the later is the one that is refused.
        future, kind, request = waiting.pop(-1 if is_refusal else 0)
        if future.done():
            return
        try:
            if field == "failure":
                facts = failure_facts(outcome.failure, code_for(outcome.failure))
            elif field is None or parts.get(field) != kind:
                raise Broken(f"the outcome of {kind} has {field or 'no result'}")
            else:
                facts = answer_facts(kind, getattr(outcome, field), request)
            future.set_result(facts)
        except Broken as error:
            future.set_exception(error)

    def end(self, code: str, why: str) -> None:
        """End every waiting call: no more outcomes will come."""
        facts = {"reason": "STREAM_ENDED", "code": code, "message": why}
        for waiting in self._calls.values():
            for future, _, _ in waiting:
                if not future.done():
                    future.set_result(dict(facts))
        self._calls.clear()


_STREAMS: dict[str, tuple[str, Any, Any]] = {
    "process": (
        "/cbench.v1.System/ProcessStream",
        system_pb2.ProcessStreamRequest,
        system_pb2.ProcessStreamResponse,
    ),
    "score": (
        "/cbench.v1.Evaluator/ScoreStream",
        evaluator_pb2.ScoreStreamRequest,
        evaluator_pb2.ScoreStreamResponse,
    ),
}


class Streamed:
    """Every call over one stream."""

    def __init__(self, channel: Any, kind: str) -> None:
        method, self._request, self._response = _STREAMS[kind]
        self._kind = kind
        self._waiting = Waiting()
        self.largest_batch = 0
        self.outcomes = 0
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._call = channel.stream_stream(method)()
        self._reader = asyncio.create_task(self._read())
        self._writing = asyncio.Lock()

    def message(
        self,
        calls: Sequence[tuple[Any, str, float | None]],
        cancel: list[str],
        trace: Trace = UNTRACED,
    ) -> Any:
        """Build a message that starts some calls and cancels others."""
        message = self._request(cancel_call_ids=cancel)
        for request, call_id, timeout in calls:
            call = message.calls.add(**trace)
            call.request.CopyFrom(request)
            if self._kind == "score":
                call.call_id = call_id
            if timeout is not None:
                call.timeout.FromNanoseconds(round(timeout * 1e9))
        return message

    async def write(self, data: bytes) -> None:
        """Send bytes as a message."""
        async with self._writing:
            await self._call.write(data)

    async def begin(
        self,
        kind: str,
        request: Any,
        call_id: str,
        timeout: float | None,
        trace: Trace = UNTRACED,
    ) -> Pending:
        """Send a call."""
        (pending,) = await self.begin_all([(request, call_id, timeout)], trace)
        return pending

    async def begin_all(
        self, calls: Sequence[tuple[Any, str, float | None]], trace: Trace = UNTRACED
    ) -> list[Pending]:
        """Send several calls in one message."""
        futures = [self._waiting.add(call_id, self._kind, request) for request, call_id, _ in calls]
        await self.write(self.message(calls, [], trace).SerializeToString())
        return [
            Pending(future, functools.partial(self._cancel, call_id, future))
            for future, (_, call_id, _) in zip(futures, calls, strict=True)
        ]

    async def _cancel(self, call_id: str, future: "asyncio.Future[Facts]") -> None:
        self._waiting.forget(call_id, future)
        await self.give_up(call_id)

    async def give_up(self, call_id: str) -> None:
        """Cancel a call by its id."""
        await self.write(self.message([], [call_id]).SerializeToString())

    async def half_close(self) -> None:
        """Say that no more calls will come."""
        async with self._writing:
            await self._call.done_writing()

    def break_off(self) -> None:
        """Cancel the stream itself."""
        self._call.cancel()

    async def close(self) -> None:
        """End the stream and its reader."""
        self._call.cancel()
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)

    async def _read(self) -> None:
        code, why = "CANCELLED", ""
        try:
            while (data := await self._call.read()) is not EOF:
                self._deliver(data)
            code, why = (await self._call.code()).name, await self._call.details()
        except grpc.aio.AioRpcError as error:
            code, why = error.code().name, error.details() or ""
        except Broken as error:
            why = str(error)
        finally:
            self._waiting.end(code, why)
            if not self.ended.done():
                self.ended.set_result(code)

    def _deliver(self, data: bytes) -> None:
        message = decoded(self._response.FromString, data)
        if len(message.outcomes) > 1:
            self.largest_batch = max(self.largest_batch, len(data))
        for outcome in message.outcomes:
            self.outcomes += 1
            self._waiting.deliver(outcome, {"response": self._kind})


_RESULTS = {kind: kind for kind in METHODS}


class Attached:
    """Every call over one attachment; `send` takes an `AttachResponse`."""

    def __init__(self, send: Callable[[gateway_pb2.AttachResponse], None]) -> None:
        self._send = send
        self._waiting = Waiting()

    async def begin(
        self,
        kind: str,
        request: Any,
        call_id: str,
        timeout: float | None,
        trace: Trace = UNTRACED,
    ) -> Pending:
        """Send a call."""
        call = gateway_pb2.Call(call_id=call_id)
        for name, value in trace.items():
            setattr(call, name, value)
        if kind in METHODS:
            getattr(call, kind).CopyFrom(request)
        if timeout is not None:
            call.timeout.FromNanoseconds(round(timeout * 1e9))
        future = self._waiting.add(call_id, kind, request)
        self._send(gateway_pb2.AttachResponse(calls=[call]))
        return Pending(future, functools.partial(self._cancel, call_id, future))

    async def _cancel(self, call_id: str, future: "asyncio.Future[Facts]") -> None:
        self._waiting.forget(call_id, future)
        self._send(gateway_pb2.AttachResponse(cancel_call_ids=[call_id]))

    def deliver(self, results: Any) -> None:
        """Give results to the calls that wait for them."""
        for result in results:
            self._waiting.deliver(result, _RESULTS)

    def end(self) -> None:
        """End every waiting call: the attachment is over."""
        self._waiting.end("UNAVAILABLE", "the attachment ended")
