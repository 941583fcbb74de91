"""Health of the daemon, as load balancers and supervisors ask for it."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc


class HealthService(health_pb2_grpc.HealthServicer):  # type: ignore[misc]
    """Answers for all services alike, and for no other.

    The one that gRPC brings writes to its watchers while it holds a lock, so a watcher
    that does not read would hold up the daemon when it says that it ends.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset({"", *names})
        self._status: Any = health_pb2.HealthCheckResponse.SERVING
        self._changed = asyncio.Event()

    def set(self, status: Any) -> None:
        """Change what is answered, and tell the watchers."""
        self._status = status
        self._changed.set()
        self._changed = asyncio.Event()

    async def Check(
        self, request: health_pb2.HealthCheckRequest, context: Any
    ) -> health_pb2.HealthCheckResponse:
        if request.service not in self._names:
            await context.abort(
                grpc.StatusCode.NOT_FOUND, f'there is no service "{request.service[:200]}".'
            )
        return health_pb2.HealthCheckResponse(status=self._status)

    async def List(
        self, request: health_pb2.HealthListRequest, context: Any
    ) -> health_pb2.HealthListResponse:
        status = health_pb2.HealthCheckResponse(status=self._status)
        return health_pb2.HealthListResponse(statuses=dict.fromkeys(self._names, status))

    async def Watch(
        self, request: health_pb2.HealthCheckRequest, context: Any
    ) -> AsyncIterator[health_pb2.HealthCheckResponse]:
        unknown = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
        while True:
            changed = self._changed
            is_known = request.service in self._names
            yield health_pb2.HealthCheckResponse(status=self._status if is_known else unknown)
            await changed.wait()
