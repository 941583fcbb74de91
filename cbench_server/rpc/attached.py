"""Systems, memory systems and evaluators of processes that dialled in."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from cbench_client._gen.cbench.v1 import evaluator_pb2, gateway_pb2, system_pb2
from cbench_client.errors import Unencodable, Unreachable
from cbench_client.messages import convert as wire
from cbench_client.messages import failures
from cbench_client.messages.scores import announced_scores, assessment_of, score_request
from cbench_client.remote.call_stream import Ended
from cbench_client.remote.process_stream import LARGE_BYTES
from cbench_server.errors import (
    CallFailed,
    ComponentAway,
    EvaluatorBroken,
    RunFailed,
    SystemUnreachable,
    UnknownName,
    blaming,
)
from cbench_server.models.tracing import called
from cbench_server.results import Failure
from cbench_server.rpc.attachments import Attachment, Attachments
from cbench_server.rpc.components import description_from_info
from cbench_server.rpc.memory_messages import KINDS, answer_of, request_of
from cbench_server.rpc.remote import call_failed, holds_conversation, with_replies
from cbench_server.spec import Options
from cbench_server.systems.caller import (
    Answer,
    Answered,
    Call,
    Failed,
    OneEnd,
    Process,
    SystemDescription,
    texts_carried,
)
from cbench_server.types import Assessment, Example, Scores

_WORDS = {"systems": "system", "memory_systems": "memory system", "evaluators": "evaluator"}


def find_attached(attachments: Attachments, kind: str, name: str) -> tuple[Attachment, Any]:
    """Return the attachment that offers something, and what it says of it."""
    attachment = attachments.find(kind, name)
    if attachment is None:
        known = [info.name for entry in attachments.all for info in getattr(entry.hello, kind)]
        with blaming("attached"):
            raise SystemUnreachable(str(UnknownName(f"attached {_WORDS[kind]}", name, known)))
    info = next(info for info in getattr(attachment.hello, kind) if info.name == name)
    return attachment, info


def _changed(attachments: Attachments, kind: str, name: str, version: str) -> Failure | None:
    """Say that what is attached under a name now is not what the run began with."""
    _, info = find_attached(attachments, kind, name)
    if info.version == version:
        return None
    return Failure(
        "evaluator" if kind == "evaluators" else "system",
        "SYSTEM_CHANGED",
        f'{_WORDS[kind]} "{name}" came back with version "{info.version}", and the run began with '
        f'version "{version}". Start a new run, or attach that version again and resume.',
    )


class AttachedCaller:
    """Calls a system, or memory system, through the attachment that offers it at the time."""

    ahead = 0
    replicas = None

    def __init__(
        self,
        attachments: Attachments,
        kind: str,
        attached_name: str,
        options: Options,
        name: str = "",
        only: Attachment | None = None,
    ) -> None:
        """`kind` is `systems` or `memory_systems`; `name` renames it; `only` is one replica."""
        self._only = only
        found, info = find_attached(attachments, kind, attached_name)
        attachment = only or found
        described = description_from_info(info, "attached", attachment.hello.sdk, name)
        self.description: SystemDescription = described
        self.capacity: int | None = attachment.max_in_flight
        self._attachments = attachments
        self._kind = kind
        self._name = attached_name
        self._options = options
        self._converses = kind == "systems" and (
            system_pb2.CAPABILITY_CONVERSATION in info.capabilities
        )
        self._held: dict[Call, Attachment] = {}
        self._decoding: set[asyncio.Task[None]] = set()

    @property
    def era(self) -> str:
        """The attachment: another one may be another process."""
        attachment = self._current()
        return attachment.id if attachment is not None else ""

    def _current(self) -> Attachment | None:
        """Return the attachment that takes calls now."""
        if self._only is None:
            return self._attachments.find(self._kind, self._name)
        is_there = self._only in self._attachments.offering(self._kind, self._name)
        return self._only if is_there else None

    @property
    def is_connected(self) -> bool:
        """Whether it is attached."""
        return self._current() is not None

    def start_many(
        self, calls: Sequence[Call], timeout: float, answered: Answered, failed: Failed
    ) -> None:
        """See Caller."""
        loop = asyncio.get_running_loop()
        attachment = self._current()

        def ended(calls: list[Ended]) -> None:
            answers = []
            for (_timeout, call), result, seconds in calls:
                self._held.pop(call, None)
                if _is_large(result):
                    apart = self._decode_apart(call, result, seconds, answered, failed)
                    self._decoding.add(task := loop.create_task(apart))
                    task.add_done_callback(self._decoding.discard)
                    continue
                try:
                    answers.append(self._answer(call, result, seconds))
                except CallFailed as error:
                    failed(call, error)
            if answers:
                answered(answers)

        changed = None
        if attachment is not None:
            version = self.description.version
            changed = _changed(self._attachments, self._kind, self._name, version)
        for call in calls:
            try:
                if changed is not None:
                    raise CallFailed(changed)
                if attachment is None:
                    message = f'{_WORDS[self._kind]} "{self._name}" is not attached.'
                    raise CallFailed(Failure("transport", "UNAVAILABLE", message, retryable=True))
                attachment.start(self._encoded(call), call, timeout, ended)
                self._held[call] = attachment
            except CallFailed as error:
                loop.call_soon(failed, call, error)

    async def _decode_apart(
        self, call: Call, result: Any, seconds: float, answered: Answered, failed: Failed
    ) -> None:
        """Decode a large answer where it holds up nothing else, and tell of it."""
        try:
            answer = await asyncio.to_thread(self._answer, call, result, seconds)
        except CallFailed as error:
            failed(call, error)
        else:
            answered([answer])

    def _encoded(self, call: Call) -> gateway_pb2.Call:
        message = _traced(gateway_pb2.Call(call_id=call.call_id), call.trace)
        work = call.work
        if isinstance(work, Process):
            self._encode_process(work, message)
        else:
            getattr(message, KINDS[type(work)]).CopyFrom(
                request_of(call, self._name, self._options)
            )
        return message

    def _encode_process(self, work: Process, message: gateway_pb2.Call) -> None:
        converses = self._converses and holds_conversation(work.example)
        request = message.converse if converses else message.process
        request.system = self._name
        request.call_id = message.call_id
        request.instruction = work.instruction
        try:
            wire.visible_to_proto(work.example, work.withheld, request.example)
            wire.fields_to_proto(self._options, request.options, "options.")
            if converses:
                wire.turns_to_proto(work.example["turns"], message.converse.turns)
        except Unencodable as error:
            raise CallFailed(Failure("dataset", error.reason, str(error))) from error

    def _answer(self, call: Call, result: Any, latency: float) -> Answer:
        if isinstance(result, CallFailed):
            raise result
        kind = result.WhichOneof("result")
        work: Any = call.work
        try:
            if kind == "process" and isinstance(work, Process):
                reply = result.process
                processed, carried = wire.answer_from_proto(reply, work.example, work.withheld)
                handler = wire.handler_seconds(reply)
                return Answer(call, processed, latency, _usage(reply), carried, handler)
            if kind == "converse" and isinstance(work, Process):
                replies = wire.turns_from_proto(result.converse.replies)
                processed = with_replies(work.visible, replies)
                return Answer(
                    call,
                    processed,
                    latency,
                    _usage(result.converse),
                    texts_carried(processed, work.example),
                    wire.handler_seconds(result.converse),
                )
            if kind == KINDS.get(type(work)):
                return answer_of(call, getattr(result, kind), latency)
        except Unencodable as error:
            raise undecodable(self._name, f"what cannot be decoded: {error}") from error
        if kind == "failure":
            raise call_failed(failures.failure_from_proto(result.failure))
        raise undecodable(self._name, f'a result of kind "{kind}"')

    def widen(self, calls: int) -> None:
        """Do nothing: it queues no calls by itself."""

    def give_up(self, call: Call) -> None:
        """See Caller."""
        if attachment := self._held.pop(call, None):
            attachment.give_up(call.call_id)

    async def wait_connected(self, timeout: float) -> bool:
        """Wait until it is attached."""
        if self._only is not None:
            # A process that attaches again is another replica.
            await asyncio.sleep(0 if self.is_connected else timeout)
            return self.is_connected
        return await self._attachments.wait_for(self._kind, self._name, timeout)

    async def close(self) -> None:
        """Give up what is in flight; the attachment is the process's own."""
        for call in list(self._held):
            self.give_up(call)
        for task in list(self._decoding):
            task.cancel()


def _is_large(result: Any) -> bool:
    return isinstance(result, gateway_pb2.CallResult) and result.ByteSize() > LARGE_BYTES


def _usage(reply: Any) -> dict[str, Any] | None:
    return wire.usage_from_proto(reply.usage) or None


def undecodable(name: str, error: object) -> CallFailed:
    """Say that an attached process sent what makes no sense."""
    return CallFailed(Failure("system", "UNDECODABLE_RESPONSE", f'"{name}" sent {error}'))


class AttachedEvaluator:
    """Scores through the attachment that offers the evaluator at the time."""

    placement = "io"

    def __init__(
        self,
        attachments: Attachments,
        info: evaluator_pb2.EvaluatorInfo,
        options: Options,
        timeout: float = 60.0,
        sdk: str = "",
    ) -> None:
        self.name = info.name
        self.version = info.version
        try:
            self.score_infos = announced_scores(info, sdk)
        except Unreachable as error:
            raise SystemUnreachable(str(error)) from error
        self._attachments = attachments
        self._options = options
        self._timeout = timeout
        self._calls = 0

    def score(self, original: Example, processed: Example) -> Scores:
        """Not for attached evaluators, whose process is reached from the daemon's loop only."""
        raise EvaluatorBroken(f'evaluator "{self.name}" is attached; use assess.')

    async def assess(self, original: Example, processed: Example) -> Assessment:
        """Score one pair."""
        attachment = self._attachments.find("evaluators", self.name)
        if attachment is None:
            raise ComponentAway(f'evaluator "{self.name}" is not attached.', was_asked=False)
        if changed := _changed(self._attachments, "evaluators", self.name, self.version):
            raise RunFailed(changed, who=f'evaluator "{self.name}"')
        self._calls += 1
        call = gateway_pb2.Call(call_id=f"score-{id(self):x}-{self._calls}")
        call.score.CopyFrom(score_request(self.name, original, processed, self._options))
        try:
            with called("score", **{"cbench.evaluator": self.name}) as trace:
                result = await _ask(attachment, _traced(call, trace), self._timeout)
        except CallFailed as error:
            is_lost = error.failure.origin == "transport" and error.failure.retryable
            kind = ComponentAway if is_lost else EvaluatorBroken
            raise kind(f'evaluator "{self.name}": {error}') from error
        if result.WhichOneof("result") != "score":
            message = result.failure.message or "it sent another kind of result"
            raise EvaluatorBroken(f'evaluator "{self.name}": {message}')
        assessment = assessment_of(result.score)
        return Assessment(assessment.scores, assessment.details)


def _traced(call: gateway_pb2.Call, trace: Mapping[str, str]) -> gateway_pb2.Call:
    call.traceparent = trace.get("traceparent", "")
    call.tracestate = trace.get("tracestate", "")
    return call


async def _ask(attachment: Attachment, call: gateway_pb2.Call, timeout: float) -> Any:
    """Have a call made and wait for its result; raise CallFailed if there is none in time."""
    ended = OneEnd[Any](lambda: attachment.give_up(call.call_id))
    attachment.start(call, None, timeout, lambda calls: ended.set(calls[0][1]))
    return await ended.wait()
