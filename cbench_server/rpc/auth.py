"""Bearer tokens: who may call at all."""

import hmac
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import grpc
import grpc.aio

from cbench_server.rpc.status import REASON_KEY

# Load balancers and supervisors ask for health without a token.
_OPEN_TO_ALL = ("/grpc.health.v1.Health/",)


class TokenInterceptor(grpc.aio.ServerInterceptor):
    """Refuses calls that carry none of the accepted tokens."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._accepted = [f"Bearer {token}".encode() for token in tokens]

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], handler_call_details: Any
    ) -> Any:
        handler = await continuation(handler_call_details)
        if handler is None or handler_call_details.method.startswith(_OPEN_TO_ALL):
            return handler
        given = b""
        for key, value in handler_call_details.invocation_metadata or ():
            if key == "authorization":
                given = value if isinstance(value, bytes) else value.encode()
        # Every token is compared, so that timing tells nothing about which came close.
        matches = [hmac.compare_digest(given, accepted) for accepted in self._accepted]
        return handler if any(matches) else _refusing(handler)


def _refusing(handler: Any) -> Any:
    async def refuse(_request: Any, context: Any) -> Any:
        await context.abort(
            grpc.StatusCode.UNAUTHENTICATED,
            "this daemon wants a bearer token, and the call carried none that it knows. "
            "Pass --token or set CBENCH_TOKEN.",
            ((REASON_KEY, "UNAUTHENTICATED"),),
        )

    if handler.request_streaming and handler.response_streaming:
        return grpc.stream_stream_rpc_method_handler(refuse)
    if handler.request_streaming:
        return grpc.stream_unary_rpc_method_handler(refuse)
    if handler.response_streaming:
        return grpc.unary_stream_rpc_method_handler(refuse)
    return grpc.unary_unary_rpc_method_handler(refuse)
