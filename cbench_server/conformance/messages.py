"""Requests built from the steps of a case, and answers as facts."""

from collections.abc import Mapping
from typing import Any

from cbench_client._gen.cbench.v1 import (
    evaluator_pb2,
    example_pb2,
    failure_pb2,
    gateway_pb2,
    memory_pb2,
    system_pb2,
)
from cbench_client.messages import convert, failures
from cbench_server.conformance.values import FALSE_NULL, UNSET

Facts = dict[str, Any]

METHODS = {
    "process": "/cbench.v1.System/Process",
    "converse": "/cbench.v1.System/ProcessConversation",
    "score": "/cbench.v1.Evaluator/Score",
    "reset": "/cbench.v1.MemorySystem/Reset",
    "ingest": "/cbench.v1.MemorySystem/Ingest",
    "query": "/cbench.v1.MemorySystem/Query",
}
_RESPONSES: dict[str, Any] = {
    "process": system_pb2.ProcessResponse,
    "converse": system_pb2.ProcessConversationResponse,
    "score": evaluator_pb2.ScoreResponse,
    "reset": memory_pb2.ResetResponse,
    "ingest": memory_pb2.IngestResponse,
    "query": memory_pb2.QueryResponse,
}
_ORIGINS = {number: name for name, number in failures.ORIGINS.items()}


def fill_value(message: example_pb2.Value, value: Any) -> None:
    """Encode a value, valid or not."""
    if value is UNSET:
        return
    if value is FALSE_NULL:
        message.null_value = False
    elif isinstance(value, list):
        message.list_value.SetInParent()
        for item in value:
            fill_value(message.list_value.values.add(), item)
    elif isinstance(value, dict):
        message.map_value.SetInParent()
        _fill_map(message.map_value.fields, value)
    else:
        message.CopyFrom(convert.value_to_proto(value))


def _fill_map(target: Any, fields: Mapping[str, Any]) -> None:
    for name, value in fields.items():
        fill_value(target[name], value)


def _fill_example(message: example_pb2.Example, parts: Mapping[str, Any]) -> None:
    message.SetInParent()
    if "id" in parts:
        message.id.SetInParent()
        if parts["id"] is not UNSET:
            convert.id_to_proto(parts["id"], message.id)
    if "dataset" in parts:
        message.dataset = parts["dataset"]
    _fill_map(message.fields, parts.get("fields", {}))


def _fill_turns(target: Any, turns: list[dict[str, Any]]) -> None:
    for turn in turns:
        message = target.add()
        for name in ("role", "content", "speaker", "time", "session"):
            setattr(message, name, turn.get(name, ""))
        _fill_map(message.fields, turn.get("fields", {}))


def request_for(kind: str, step: Mapping[str, Any], call_id: str) -> Any:
    """Build the request of a call step."""
    if kind == "score":
        score = evaluator_pb2.ScoreRequest(evaluator=step.get("evaluator", ""))
        _fill_example(score.original, step.get("original", {}))
        _fill_example(score.processed, step.get("processed", {}))
        _fill_map(score.options, step.get("options", {}))
        return score
    system = step.get("system", "")
    if kind in ("process", "converse"):
        makes: Any = system_pb2.ProcessRequest
        if kind == "converse":
            makes = system_pb2.ProcessConversationRequest
        request = makes(system=system, call_id=call_id, instruction=step.get("instruction", ""))
        _fill_example(request.example, step)
        _fill_map(request.options, step.get("options", {}))
        if kind == "converse":
            _fill_turns(request.turns, step.get("turns", []))
        return request
    return _memory_request(kind, step, system, call_id)


def _memory_request(kind: str, step: Mapping[str, Any], system: str, call_id: str) -> Any:
    scope = step.get("scope", "")
    if kind == "reset":
        return memory_pb2.ResetRequest(system=system, scope=scope)
    if kind == "ingest":
        ingest = memory_pb2.IngestRequest(system=system, scope=scope, call_id=call_id)
        _fill_turns(ingest.turns, step.get("turns", []))
        return ingest
    return memory_pb2.QueryRequest(
        system=system,
        scope=scope,
        call_id=call_id,
        question=step.get("question", ""),
        budget=step.get("budget"),
        asked_at=step.get("asked_at", ""),
        instruction=step.get("instruction", ""),
    )


def response_from(kind: str, data: bytes) -> Any:
    """Decode the bytes of an answer."""
    return _RESPONSES[kind].FromString(data)


def facts_of(kind: str, response: Any, request: Any) -> Facts:
    """Return the facts of an answer."""
    return {"reason": "", "code": "OK", **_PARTS[kind](response, request)}


def failure_facts(failure: failure_pb2.Failure, code: str) -> Facts:
    """Return the facts of a failure."""
    has_delay = failure.HasField("retry_delay")
    return {
        "code": code,
        "reason": failure.reason,
        "message": failure.message,
        "origin": _ORIGINS.get(failure.origin, "unspecified"),
        "retryable": failure.retryable,
        "retry_delay": failure.retry_delay.ToNanoseconds() / 1e9 if has_delay else None,
        "stack_trace": failure.stack_trace,
    }


def _processed(response: system_pb2.ProcessResponse, request: Any) -> Facts:
    sent = convert.example_from_proto(request.example) if response.carried_fields else {}
    return {
        "fields": convert.processed_from_proto(response, sent),
        "carried": sorted(response.carried_fields),
        "usage": convert.usage_from_proto(response.usage),
        # Of interest where fields were not sent back; telling the size encodes the whole again.
        "bytes": response.ByteSize() if response.carried_fields else None,
        "handler_seconds": convert.handler_seconds(response),
    }


def _conversed(response: system_pb2.ProcessConversationResponse, _: Any) -> Facts:
    return {
        "replies": convert.turns_from_proto(response.replies),
        "handler_seconds": convert.handler_seconds(response),
    }


def _scored(response: evaluator_pb2.ScoreResponse, _: Any) -> Facts:
    return {
        "scores": dict(response.scores),
        "explanation": response.explanation,
        "details": convert.fields_from_proto(response.details),
    }


def _ingested(response: memory_pb2.IngestResponse, _: Any) -> Facts:
    return {
        "usage": convert.usage_from_proto(response.usage),
        "stored_bytes": _optional(response, "stored_bytes"),
        "handler_seconds": convert.handler_seconds(response),
    }


def _queried(response: memory_pb2.QueryResponse, _: Any) -> Facts:
    seconds = None
    if response.HasField("retrieval_time"):
        seconds = response.retrieval_time.ToNanoseconds() / 1e9
    return {
        "response": response.response,
        "context": _optional(response, "context"),
        "context_tokens": _optional(response, "context_tokens"),
        "stored_bytes": _optional(response, "stored_bytes"),
        "retrieval_seconds": seconds,
        "usage": convert.usage_from_proto(response.usage),
        "metadata": convert.fields_from_proto(response.metadata),
        "handler_seconds": convert.handler_seconds(response),
    }


def _optional(message: Any, name: str) -> Any:
    return getattr(message, name) if message.HasField(name) else None


_PARTS: dict[str, Any] = {
    "process": _processed,
    "converse": _conversed,
    "score": _scored,
    "reset": lambda response, request: {},
    "ingest": _ingested,
    "query": _queried,
}


def info_facts(info: Any) -> Facts:
    """Return the facts in the description of a system, memory system or evaluator."""
    facts: Facts = {
        "version": info.version,
        "description": info.description,
        "max_concurrency": _optional(info, "max_concurrency"),
    }
    if isinstance(info, evaluator_pb2.EvaluatorInfo):
        facts["required_fields"] = list(info.required_fields)
        facts["scores"] = {
            score.name: [score.description, score.higher_is_better] for score in info.scores
        }
        facts["worst"] = {
            score.name: score.worst for score in info.scores if score.HasField("worst")
        }
    else:
        facts["capabilities"] = sorted(
            system_pb2.Capability.Name(each).removeprefix("CAPABILITY_").lower()
            for each in info.capabilities
        )
    return facts


def hello_facts(hello: gateway_pb2.Hello) -> Facts:
    """Return the facts of the first message of an attachment."""
    return {
        "sdk": hello.sdk,
        "max_in_flight": _optional(hello, "max_in_flight"),
        "systems": {info.name: info_facts(info) for info in hello.systems},
        "memory_systems": {info.name: info_facts(info) for info in hello.memory_systems},
        "evaluators": {info.name: info_facts(info) for info in hello.evaluators},
    }
