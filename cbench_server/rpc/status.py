"""Errors to gRPC statuses: the one table, and the interceptor that applies it."""

import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NoReturn

import grpc
import grpc.aio

from cbench_client.errors import Unencodable as UnencodableMessage
from cbench_server import errors

log = logging.getLogger(__name__)

REASON_KEY = "cbench-reason"
"""Trailing metadata that carries an error's stable reason."""

# The first class that matches decides.
_CODES: tuple[tuple[type[Exception], grpc.StatusCode], ...] = (
    (errors.NotFound, grpc.StatusCode.NOT_FOUND),
    (errors.InvalidInput, grpc.StatusCode.INVALID_ARGUMENT),
    (UnencodableMessage, grpc.StatusCode.INVALID_ARGUMENT),
    (errors.AlreadyExists, grpc.StatusCode.ALREADY_EXISTS),
    (errors.WrongState, grpc.StatusCode.FAILED_PRECONDITION),
    (errors.SystemUnreachable, grpc.StatusCode.FAILED_PRECONDITION),
    (errors.LimitReached, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (errors.ShuttingDown, grpc.StatusCode.UNAVAILABLE),
    (errors.StoreError, grpc.StatusCode.DATA_LOSS),
    (errors.CbenchError, grpc.StatusCode.INTERNAL),
)


def code_of(error: Exception) -> grpc.StatusCode:
    """Return the status an error ends a call with."""
    for kind, code in _CODES:
        if isinstance(error, kind):
            return code
    return grpc.StatusCode.INTERNAL


async def _abort(context: Any, error: Exception) -> NoReturn:
    code = code_of(error)
    if isinstance(error, errors.CbenchError | UnencodableMessage):
        reason, message = error.reason, str(error)
    else:
        log.exception("a call broke", exc_info=error)
        reason, message = "INTERNAL", f"the daemon failed: {type(error).__name__}: {error}"
    await context.abort(code, message, ((REASON_KEY, reason),))
    raise AssertionError("abort raises")


class StatusInterceptor(grpc.aio.ServerInterceptor):
    """Turns what a method raises into a status."""

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], handler_call_details: Any
    ) -> Any:
        handler = await continuation(handler_call_details)
        if handler is None or not handler_call_details.method.startswith("/cbench."):
            return handler
        attribute = next(
            name
            for name in ("unary_unary", "unary_stream", "stream_unary", "stream_stream")
            if getattr(handler, name, None) is not None
        )
        method = getattr(handler, attribute)
        wrapped = _guard_stream(method) if inspect.isasyncgenfunction(method) else _guard(method)
        build = getattr(grpc, f"{attribute}_rpc_method_handler")
        built: grpc.RpcMethodHandler[Any, Any] = build(
            wrapped, handler.request_deserializer, _or_bytes(handler.response_serializer)
        )
        return built


def _or_bytes(serialize: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    """Let a method return what is encoded already."""
    return lambda message: message if type(message) is bytes else serialize(message)


def _guard(method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def guarded(request: Any, context: Any) -> Any:
        try:
            return await method(request, context)
        except grpc.aio.AbortError:
            raise
        except Exception as error:
            await _abort(context, error)

    return guarded


def _guard_stream(method: Callable[..., AsyncIterator[Any]]) -> Callable[..., AsyncIterator[Any]]:
    async def guarded(request: Any, context: Any) -> AsyncIterator[Any]:
        try:
            async for response in method(request, context):
                yield response
        except grpc.aio.AbortError:
            raise
        except Exception as error:
            await _abort(context, error)

    return guarded
