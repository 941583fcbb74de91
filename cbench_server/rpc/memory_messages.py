"""Messages of the MemorySystem service, to and from what the runner calls with."""

from typing import Any

from cbench_client import convert as wire
from cbench_client._gen.cbench.v1 import memory_pb2
from cbench_client.errors import Unencodable
from cbench_server.errors import CallFailed
from cbench_server.results import Failure
from cbench_server.systems.memory_caller import IngestReply, QueryReply, Question, Turn


def reset_request(system: str, scope: str) -> memory_pb2.ResetRequest:
    """Encode a request to forget."""
    return memory_pb2.ResetRequest(system=system, scope=scope)


def ingest_request(
    system: str, scope: str, turns: list[Turn], call_id: str
) -> memory_pb2.IngestRequest:
    """Encode turns to remember; raise CallFailed for those that cannot be sent."""
    request = memory_pb2.IngestRequest(system=system, scope=scope, call_id=call_id)
    try:
        wire.turns_to_proto(turns, request.turns)
    except Unencodable as error:
        raise CallFailed(Failure("dataset", error.reason, str(error))) from error
    return request


def query_request(
    system: str, scope: str, question: Question, call_id: str
) -> memory_pb2.QueryRequest:
    """Encode a question; raise CallFailed for one that cannot be sent."""
    try:
        return memory_pb2.QueryRequest(
            system=system,
            scope=scope,
            question=question.text,
            call_id=call_id,
            budget=question.budget,
            asked_at=question.asked_at,
        )
    except ValueError as error:
        raise CallFailed(Failure("dataset", "UNENCODABLE_VALUE", str(error))) from error


def ingest_reply(message: memory_pb2.IngestResponse, latency: float) -> IngestReply:
    """Decode what ingesting cost."""
    return IngestReply(latency, _optional(message, "stored_bytes"), _usage(message))


def query_reply(message: memory_pb2.QueryResponse, latency: float) -> QueryReply:
    """Decode an answer; raises the wire's Unencodable for metadata that is none."""
    context = _optional(message, "context")
    retrieval = None
    if message.HasField("retrieval_time"):
        retrieval = message.retrieval_time.ToNanoseconds() / 1e9
    return QueryReply(
        latency=latency,
        # Empty beside a context, it means that the system only retrieves.
        response=None if context is not None and not message.response else message.response,
        context=context,
        context_tokens=_optional(message, "context_tokens"),
        stored_bytes=_optional(message, "stored_bytes"),
        metadata=wire.fields_from_proto(message.metadata, "metadata."),
        usage=_usage(message),
        retrieval_time=retrieval,
    )


def _usage(message: Any) -> dict[str, Any] | None:
    return (wire.usage_from_proto(message.usage) or None) if message.HasField("usage") else None


def _optional(message: Any, name: str) -> Any:
    return getattr(message, name) if message.HasField(name) else None
