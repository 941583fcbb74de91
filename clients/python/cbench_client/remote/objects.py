"""Systems and evaluators of another process, used as if they were objects of this one.

Nothing is dialled before the first use, which raises `Unreachable` if nothing
answers. Failures that may pass are retried until the timeout, always with
the same call id. Objects may be shared by threads and by event loops.
"""

import copy
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from cbench_client._gen.cbench.v1 import evaluator_pb2, memory_pb2
from cbench_client.messages import convert
from cbench_client.messages.options import DeclaredOptions, declared_options
from cbench_client.messages.scores import (
    AnnouncedScore,
    Assessment,
    announced_scores,
    assessment_of,
    score_request,
)
from cbench_client.remote.channel import Tls
from cbench_client.remote.connection import SystemConnection
from cbench_client.remote.loops import run, with_retries
from cbench_client.remote.peer import Peer, ask, decoded, describe, present, versions
from cbench_client.remote.unary import UnaryConnection


class RemoteSystem(Peer[SystemConnection]):
    """A system at `target`: `host:port`, or `host:port/NAME` for one of several.

    `name` is what reports show; `timeout` is in seconds and covers the retries
    of one call; `options` are sent with every call.
    """

    def __init__(
        self,
        target: str,
        name: str | None = None,
        timeout: float = 60.0,
        tls: Tls | bool | None = None,
        token: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(target, name, timeout, tls, token)
        self.options = dict(options or {})

    def _open(self) -> SystemConnection:
        return SystemConnection(self.target, tls=self._tls, token=self._token)

    def process(self, example: Mapping[str, Any], instruction: str = "") -> dict[str, Any]:
        """Have an example transformed; what the call used joins it as `api_usage`.

        `instruction` is what the dataset asks of whoever answers.
        """
        return run(self.aprocess(example, instruction))

    def process_conversation(
        self, turns: Sequence[Mapping[str, Any]], instruction: str = ""
    ) -> list[dict[str, Any]]:
        """Have every user turn of a conversation answered."""
        return run(self.aprocess_conversation(turns, instruction))

    async def aprocess(self, example: Mapping[str, Any], instruction: str = "") -> dict[str, Any]:
        """Do as `process`, on the running loop."""
        connection, call_id = await self._connect(), uuid.uuid4().hex
        # A repeated call keeps off the stream: one that breaks the stream would
        # take the same others down each time.
        reply = await with_retries(
            lambda seconds, number: connection.process(
                self._served or "",
                example,
                call_id=call_id,
                timeout=seconds,
                options=self.options,
                instruction=instruction,
                alone=number > 1,
            ),
            self.timeout,
        )
        if reply.usage and "api_usage" not in reply.processed:
            reply.processed["api_usage"] = reply.usage
        return reply.processed

    async def aprocess_conversation(
        self, turns: Sequence[Mapping[str, Any]], instruction: str = ""
    ) -> list[dict[str, Any]]:
        """Do as `process_conversation`, on the running loop."""
        connection, call_id = await self._connect(), uuid.uuid4().hex
        reply = await with_retries(
            lambda seconds, _: connection.converse(
                self._served or "",
                {},
                turns,
                call_id=call_id,
                timeout=seconds,
                options=self.options,
                instruction=instruction,
            ),
            self.timeout,
        )
        return reply.replies

    async def _offers(self, connection: SystemConnection) -> Mapping[str, str]:
        return {system.name: system.version for system in await connection.describe()}


class RemoteMemorySystem(Peer[UnaryConnection]):
    """A memory system at `target`, seen through one scope of it.

    Scopes do not see each other; without one given, each object has its own.
    `options` are sent with everything that it is to remember and asked.
    """

    _kind = "memory system"

    def __init__(
        self,
        target: str,
        name: str | None = None,
        scope: str | None = None,
        timeout: float = 60.0,
        tls: Tls | bool | None = None,
        token: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(target, name, timeout, tls, token)
        self.options = dict(options or {})
        self.scope = scope or uuid.uuid4().hex
        self.last_reply: dict[str, Any] = {}

    def _open(self) -> UnaryConnection:
        service = "cbench.v1.MemorySystem"
        return UnaryConnection(self.target, service, tls=self._tls, token=self._token)

    def with_scope(self, scope: str) -> "RemoteMemorySystem":
        """Return a view of another scope, over the same connections."""
        other = copy.copy(self)
        other.scope, other.last_reply = scope, {}
        return other

    def reset(self) -> None:
        """Forget everything in the scope."""
        run(self.areset())

    def ingest(self, turns: Sequence[Mapping[str, Any]]) -> None:
        """Remember turns, in order."""
        run(self.aingest(turns))

    def query(
        self,
        question: str,
        budget: int | None = None,
        asked_at: str | None = None,
        instruction: str = "",
    ) -> str:
        """Answer from memory; `last_reply` then holds all that was said.

        `budget` bounds the remembered tokens handed to a model, and
        `instruction` is what the dataset asks of whoever answers.
        """
        return run(self.aquery(question, budget, asked_at, instruction))

    async def areset(self) -> None:
        """Do as `reset`, on the running loop."""
        await self._call("Reset", memory_pb2.ResetRequest(), memory_pb2.ResetResponse)

    async def aingest(self, turns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Do as `ingest`, on the running loop, and say what it used."""
        request = memory_pb2.IngestRequest(call_id=uuid.uuid4().hex)
        convert.turns_to_proto(turns, request.turns)
        convert.fields_to_proto(self.options, request.options, "options.")
        response = await self._call("Ingest", request, memory_pb2.IngestResponse)
        return present(response, ("stored_bytes",))

    async def aquery(
        self,
        question: str,
        budget: int | None = None,
        asked_at: str | None = None,
        instruction: str = "",
    ) -> str:
        """Do as `query`, on the running loop."""
        request = memory_pb2.QueryRequest(
            question=question,
            call_id=uuid.uuid4().hex,
            budget=budget,
            asked_at=asked_at or "",
            instruction=instruction,
        )
        convert.fields_to_proto(self.options, request.options, "options.")
        response = await self._call("Query", request, memory_pb2.QueryResponse)
        reply = present(response, ("context", "context_tokens", "stored_bytes"))
        if response.HasField("retrieval_time"):
            reply["retrieval_seconds"] = response.retrieval_time.ToNanoseconds() / 1e9
        reply["metadata"] = decoded(
            self.target, lambda: convert.fields_from_proto(response.metadata, "metadata.")
        )
        reply["response"] = response.response
        self.last_reply = reply
        return str(response.response)

    async def _call(self, method: str, request: Any, response_type: Any) -> Any:
        connection = await self._connect()
        request.system, request.scope = self._served or "", self.scope
        return await ask(connection, method, request, response_type, self.timeout)

    async def _offers(self, connection: UnaryConnection) -> Mapping[str, str]:
        return await versions(connection, memory_pb2.MemorySystemDescribeResponse, "systems")


class RemoteEvaluator(Peer[UnaryConnection]):
    """An evaluator at `target`, such as one built into a daemon."""

    _kind = "evaluator"
    placement = "io"

    def __init__(
        self,
        target: str,
        name: str | None = None,
        options: Mapping[str, Any] | None = None,
        timeout: float = 60.0,
        tls: Tls | bool | None = None,
        token: str | None = None,
    ) -> None:
        super().__init__(target, name, timeout, tls, token)
        # Here the name given is the one served: the server knows its aliases.
        self._served = self._served or name
        self.options = dict(options or {})
        self._infos: dict[str | None, evaluator_pb2.EvaluatorInfo] = {}
        self._scores: dict[str | None, tuple[AnnouncedScore, ...]] = {}

    def _open(self) -> UnaryConnection:
        return UnaryConnection(
            self.target,
            "cbench.v1.Evaluator",
            tls=self._tls,
            token=self._token,
            origin="evaluator",
        )

    def score(self, original: Mapping[str, Any], processed: Mapping[str, Any]) -> dict[str, float]:
        """Compare `processed` with `original` and name each score."""
        return run(self.ascore(original, processed))

    async def ascore(
        self, original: Mapping[str, Any], processed: Mapping[str, Any]
    ) -> dict[str, float]:
        """Do as `score`, on the running loop."""
        return (await self.assess(original, processed)).scores

    async def assess(self, original: Mapping[str, Any], processed: Mapping[str, Any]) -> Assessment:
        """Score, and say what led to the scores."""
        connection = await self._connect()
        request = score_request(self._served or "", original, processed, self.options)
        response = await ask(
            connection, "Score", request, evaluator_pb2.ScoreResponse, self.timeout
        )
        return decoded(self.target, lambda: assessment_of(response))

    @property
    def score_infos(self) -> tuple[AnnouncedScore, ...]:
        """The scores it announces, once it was reached."""
        return self._scores.get(self._served, ())

    @property
    def declared(self) -> DeclaredOptions | None:
        """The options it takes, once it was reached; None where it does not say."""
        info = self._infos.get(self._served)
        return declared_options(info) if info is not None else None

    async def _offers(self, connection: UnaryConnection) -> Mapping[str, str]:
        response = evaluator_pb2.EvaluatorDescribeResponse
        described = await describe(connection, response, "evaluators")
        offers = {info.name: info for info in described.evaluators}
        wanted = [name for name in offers if self._served in (None, name)]
        self._scores = {name: announced_scores(offers[name], described.sdk) for name in wanted}
        self._infos = {**offers}
        return {info.name: info.version for info in offers.values()}
