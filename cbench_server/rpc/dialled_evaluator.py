"""An evaluator in another process, dialled by the daemon, which says at once when it is away."""

from collections.abc import Mapping
from typing import Any

from cbench_client import RemoteEvaluator
from cbench_client._gen.cbench.v1 import evaluator_pb2
from cbench_client.errors import RemoteFailure, Unreachable
from cbench_client.messages.scores import Assessment, assessment_of, score_request
from cbench_client.remote.loops import with_retries
from cbench_client.remote.peer import decoded
from cbench_client.remote.unary import UnaryConnection
from cbench_server.errors import ComponentAway
from cbench_server.models.tracing import called


class DialledEvaluator(RemoteEvaluator):
    """A RemoteEvaluator that leaves waiting for its process to the run."""

    async def assess(self, original: Mapping[str, Any], processed: Mapping[str, Any]) -> Assessment:
        """Score, and say what led to the scores; raise ComponentAway where nobody is there."""
        try:
            connection = await self._connect()
        except Unreachable as error:
            raise ComponentAway(str(error), was_asked=False) from error
        request = score_request(self._served or "", original, processed, self.options)
        encoded = request.SerializeToString()
        data = await with_retries(
            lambda seconds, _: self._once(connection, encoded, seconds), self.timeout
        )
        return decoded(
            self.target, lambda: assessment_of(evaluator_pb2.ScoreResponse.FromString(data))
        )

    async def _once(self, connection: UnaryConnection, request: bytes, timeout: float) -> bytes:
        try:
            with called("score", **{"cbench.evaluator": self.name}) as trace:
                return await connection.call("Score", request, timeout, trace)
        except RemoteFailure as failure:
            if failure.origin == "transport" and failure.retryable:
                raise ComponentAway(str(failure)) from failure
            raise
