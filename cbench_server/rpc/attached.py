"""Attached systems and evaluators, as the runner sees them."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from cbench_client import convert as wire
from cbench_client._gen.cbench.v1 import evaluator_pb2, gateway_pb2, system_pb2
from cbench_client.errors import Unencodable
from cbench_client.scoring import assessment_of, score_request
from cbench_server.errors import CallFailed, EvaluatorBroken
from cbench_server.results import Failure
from cbench_server.rpc.attachments import Attachment, Attachments
from cbench_server.rpc.remote_caller import call_failed, holds_conversation, with_replies
from cbench_server.systems.caller import Reply, SystemDescription
from cbench_server.types import Assessment, Example, Scores


async def ask(
    attachment: Attachment, call: gateway_pb2.Call, timeout: float
) -> gateway_pb2.CallResult:
    """Have a call made; raise CallFailed if there is no result in time."""
    call.timeout.FromNanoseconds(round(timeout * 1e9))
    try:
        async with asyncio.timeout(timeout):
            return await attachment.call(call)
    except TimeoutError:
        failure = Failure("system", "DEADLINE_EXCEEDED", f"no answer within {timeout:g}s.")
        raise CallFailed(failure) from None


def undecodable(name: str, error: object) -> CallFailed:
    """Say that an attached process sent what makes no sense."""
    return CallFailed(Failure("system", "UNDECODABLE_RESPONSE", f'"{name}" sent {error}'))


class AttachedCaller:
    """Calls a system through whatever attachment offers it at the time."""

    def __init__(
        self,
        attachments: Attachments,
        info: system_pb2.SystemInfo,
        description: SystemDescription,
        options: Mapping[str, Any],
    ) -> None:
        self.description = description
        self._attachments = attachments
        self._name = info.name
        self._converses = system_pb2.CAPABILITY_CONVERSATION in info.capabilities
        self._options = options

    async def call(self, example: Example, *, call_id: str, timeout: float) -> Reply:
        """Make one attempt."""
        attachment = self._attachments.system(self._name)
        if attachment is None:
            failure = Failure(
                "transport",
                "UNAVAILABLE",
                f'system "{self._name}" is not attached.',
                retryable=True,
            )
            raise CallFailed(failure)
        call = gateway_pb2.Call(call_id=call_id)
        converses = self._converses and holds_conversation(example)
        request = call.converse if converses else call.process
        request.system = self._name
        request.call_id = call_id
        try:
            wire.example_to_proto(example, request.example)
            wire.fields_to_proto(self._options, request.options, "options.")
            if converses:
                wire.turns_to_proto(example["turns"], call.converse.turns)
        except Unencodable as error:
            raise CallFailed(Failure("dataset", error.reason, str(error))) from error
        started = time.monotonic()
        result = await ask(attachment, call, timeout)
        return self._reply(result, example, time.monotonic() - started)

    def _reply(self, result: gateway_pb2.CallResult, example: Example, latency: float) -> Reply:
        kind = result.WhichOneof("result")
        try:
            if kind == "process":
                processed = wire.processed_from_proto(result.process, example)
                usage = wire.usage_from_proto(result.process.usage)
                return Reply(processed, latency, usage or None)
            if kind == "converse":
                replies = wire.turns_from_proto(result.converse.replies)
                usage = wire.usage_from_proto(result.converse.usage)
                return Reply(with_replies(example, replies), latency, usage or None)
        except Unencodable as error:
            raise undecodable(self._name, f"what cannot be decoded: {error}") from error
        if kind == "failure":
            raise call_failed(wire.failure_from_proto(result.failure))
        raise undecodable(self._name, f'a result of kind "{kind}"')

    async def wait_connected(self, timeout: float) -> bool:
        """Wait until the system is attached."""
        return await self._attachments.wait_for_system(self._name, timeout)

    async def close(self) -> None:
        """Nothing to let go of: the attachment is the process's own."""


class AttachedEvaluator:
    """Scores through whatever attachment offers the evaluator at the time."""

    placement = "io"

    def __init__(
        self,
        attachments: Attachments,
        info: evaluator_pb2.EvaluatorInfo,
        options: Mapping[str, Any],
        timeout: float = 60.0,
    ) -> None:
        self.name = info.name
        self.version = info.version
        self._attachments = attachments
        self._options = options
        self._timeout = timeout
        self._calls = 0

    def score(self, original: Example, processed: Example) -> Scores:
        """Not for attached evaluators, whose process is reached from the daemon's loop only."""
        raise EvaluatorBroken(f'evaluator "{self.name}" is attached; use assess.')

    async def assess(self, original: Example, processed: Example) -> Assessment:
        """Score one pair."""
        attachment = self._attachments.evaluator(self.name)
        if attachment is None:
            raise EvaluatorBroken(f'evaluator "{self.name}" is not attached.')
        self._calls += 1
        call = gateway_pb2.Call(call_id=f"score-{id(self):x}-{self._calls}")
        call.score.CopyFrom(score_request(self.name, original, processed, self._options))
        try:
            result = await ask(attachment, call, self._timeout)
        except CallFailed as error:
            raise EvaluatorBroken(f'evaluator "{self.name}": {error}') from error
        if result.WhichOneof("result") != "score":
            message = result.failure.message or "it sent another kind of result"
            raise EvaluatorBroken(f'evaluator "{self.name}": {message}')
        assessment = assessment_of(result.score)
        return Assessment(assessment.scores, assessment.details)
