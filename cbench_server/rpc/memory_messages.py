"""Messages of the MemorySystem service, to and from the work of a call."""

from typing import Any

from cbench_client._gen.cbench.v1 import memory_pb2
from cbench_client.errors import Unencodable
from cbench_client.messages import convert as wire
from cbench_server.errors import CallFailed
from cbench_server.results import Failure
from cbench_server.spec import Options
from cbench_server.systems.caller import Answer, Call, Ingest, Query, Recall, Reset
from cbench_server.systems.in_process_memory import query_output, taken_passages

Request = memory_pb2.ResetRequest | memory_pb2.IngestRequest | memory_pb2.QueryRequest
# What each kind of work is called in the contract, and what answers it.
METHODS: dict[type, tuple[str, Any]] = {
    Reset: ("Reset", memory_pb2.ResetResponse),
    Ingest: ("Ingest", memory_pb2.IngestResponse),
    Query: ("Query", memory_pb2.QueryResponse),
}

KINDS = {kind: name.lower() for kind, (name, _) in METHODS.items()}
"""The same in an attachment's calls and results."""


def request_of(call: Call, system: str, options: Options) -> Request:
    """Encode a call; raise CallFailed for one that cannot be sent."""
    work = call.work
    try:
        if isinstance(work, Reset):
            return memory_pb2.ResetRequest(system=system, scope=work.scope)
        if isinstance(work, Ingest):
            request = memory_pb2.IngestRequest(
                system=system, scope=work.scope, call_id=call.call_id
            )
            wire.turns_to_proto(work.turns, request.turns)
            wire.fields_to_proto(options, request.options, "options.")
            return request
        assert isinstance(work, Query)
        query = memory_pb2.QueryRequest(
            system=system,
            scope=work.scope,
            question=work.question,
            call_id=call.call_id,
            budget=work.budget,
            asked_at=work.asked_at,
            instruction=work.instruction,
        )
        wire.fields_to_proto(options, query.options, "options.")
        return query
    except Unencodable as error:
        raise CallFailed(Failure("dataset", error.reason, str(error))) from error
    except ValueError as error:
        raise CallFailed(Failure("dataset", "UNENCODABLE_VALUE", str(error))) from error


def answer_of(call: Call, message: Any, latency: float) -> Answer:
    """Decode a response; raises the wire's Unencodable for metadata that is none."""
    if isinstance(message, memory_pb2.ResetResponse):
        return Answer(call, {}, latency)
    stored = _optional(message, "stored_bytes")
    if isinstance(message, memory_pb2.IngestResponse):
        handler = wire.handler_seconds(message)
        return Answer(call, {}, latency, _usage(message), (), handler, Recall(stored))
    context = _optional(message, "context")
    retrieval = None
    if message.HasField("retrieval_time"):
        retrieval = message.retrieval_time.ToNanoseconds() / 1e9
    metadata = wire.fields_from_proto(message.metadata, "metadata.")
    retrieved = taken_passages(metadata)
    # Empty beside a context, a response means that the system only retrieves.
    only_retrieves = (context is not None or retrieved is not None) and not message.response
    response = None if only_retrieves else message.response
    return Answer(
        call,
        query_output(response, context, retrieved),
        latency,
        _usage(message),
        handler_seconds=wire.handler_seconds(message),
        recall=Recall(
            stored_bytes=stored,
            context_tokens=_optional(message, "context_tokens"),
            retrieval_time=retrieval,
            metadata=metadata,
        ),
    )


def _usage(message: Any) -> dict[str, Any] | None:
    return (wire.usage_from_proto(message.usage) or None) if message.HasField("usage") else None


def _optional(message: Any, name: str) -> Any:
    return getattr(message, name) if message.HasField(name) else None
