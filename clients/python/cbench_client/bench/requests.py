"""Requests to a daemon, or to the first of several that answers: made, repeated, explained."""

import re
from collections.abc import Iterator
from typing import Any, TypeVar, cast

import grpc
from google.protobuf.message import Message

from cbench_client.bench.daemon_contract import DaemonContract, ask_contract
from cbench_client.errors import ClientError, Refused, Unreachable
from cbench_client.messages.error_details import KEY, FieldViolation, decode_details
from cbench_client.remote.channel import Tls
from cbench_client.remote.daemons import Daemons
from cbench_client.remote.diagnosis import explain
from cbench_client.remote.status import is_lost

BENCH = "cbench.v1.Bench"
FINDS_NO_SERVER = re.compile(r"failed to connect|resolv", re.IGNORECASE)
_UNREACHABLE = frozenset(
    (
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.UNIMPLEMENTED,
    )
)
# Done a second time these would find nothing left to do, and say so.
_NOT_REPEATED = frozenset(("DeleteRun", "PruneRuns"))
# How long a daemon may take to say what it knows, before it is called without.
_CONTRACT_SECONDS = 3.0

M = TypeVar("M", bound=Message)


class Requests:
    """What every method of `BenchClient` needs to ask a daemon."""

    is_of_this_version = False
    """Whether the daemon is known to be as new as this client, and is not asked what it knows."""

    def __init__(
        self,
        target: str = "127.0.0.1:50051",
        *,
        tls: Tls | bool | None = None,
        token: str | None = None,
        timeout: float = 30.0,
    ) -> None:
        self.target = target
        self.timeout = timeout
        self._tls = tls
        self._has_token = bool(token)
        self._has_answered = False
        self._is_closed = False
        self._daemons = Daemons(target, tls, token)
        self._contracts: dict[str, DaemonContract] = {}

    @property
    def _channel(self) -> Any:
        return self._daemons.channel

    def close(self) -> None:
        """Close the connection; iterators that follow a run end with an error."""
        self._is_closed = True
        self._daemons.close()

    def _pages(self, name: str, request: Any, response_type: Any) -> Iterator[Any]:
        while True:
            page = self._call(name, request, response_type)
            yield page
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def _stream(self, name: str, request: Message, response_type: Any) -> Any:
        self._check_known(request)
        method = self._channel.unary_stream(
            f"/{BENCH}/{name}",
            request_serializer=lambda request: request.SerializeToString(),
            response_deserializer=response_type.FromString,
        )
        return method(request)

    def _unary(self, service: str, name: str, response_type: Any) -> Any:
        return self._channel.unary_unary(
            f"/{service}/{name}",
            request_serializer=lambda request: request.SerializeToString(),
            response_deserializer=response_type.FromString,
        )

    def _call(self, name: str, request: Message, response_type: type[M], service: str = BENCH) -> M:
        return self._ask(name, request, response_type, service, self.timeout)

    def _call_long(self, name: str, request: Message, response_type: type[M]) -> M:
        return self._ask(name, request, response_type, BENCH, None)

    def _ask(
        self,
        name: str,
        request: Message,
        response_type: type[M],
        service: str,
        timeout: float | None,
    ) -> M:
        tries = len(self._daemons.addresses)
        while True:
            tries -= 1
            if service == BENCH:
                self._check_known(request)
            try:
                method = self._unary(service, name, response_type)
                response: M = method(request, timeout=timeout)
            except grpc.RpcError as error:
                if not (tries and self._is_asked_elsewhere(name, error)):
                    raise self._error(error, service, name) from None
            else:
                self._has_answered = True
                return response

    def _is_asked_elsewhere(self, name: str, error: grpc.RpcError) -> bool:
        """Whether a request that was lost may be made again, and another daemon answers."""
        was_sent = not FINDS_NO_SERVER.search(error.details() or "")
        if not is_lost(error) or (was_sent and name in _NOT_REPEATED):
            return False
        return self._daemons.is_another_there()

    def _contract(self) -> DaemonContract | None:
        """Return what the daemon in use knows of the contract; None if it cannot be told."""
        channel, address = self._channel, self._daemons.address
        if address not in self._contracts:
            found = ask_contract(channel, min(self.timeout, _CONTRACT_SECONDS))
            if found is None:
                return None
            self._contracts[address] = found
        return self._contracts[address]

    def _check_known(self, request: Message) -> None:
        """Refuse what the daemon in use would ignore."""
        if self.is_of_this_version or not request.ListFields():
            return
        contract = self._contract()
        ignored = contract.ignored(request) if contract is not None else []
        if not ignored:
            return
        what = ", ".join(ignored)
        told = (
            f"the daemon at {self._daemons.address} is older than this client and does not know "
            f"{what}, so it would not do what was asked. Update the daemon, or leave that out."
        )
        violations = [FieldViolation(path, "not known to this daemon") for path in ignored]
        raise Refused(told, code="INVALID_ARGUMENT", reason="UNKNOWN_FIELD", violations=violations)

    def _failure(self, error: grpc.RpcError, name: str = "") -> ClientError:
        return self._error(error, BENCH, name)

    def _error(self, error: grpc.RpcError, service: str, name: str = "") -> ClientError:
        code = error.code() or grpc.StatusCode.UNKNOWN
        if code is grpc.StatusCode.UNIMPLEMENTED and service == BENCH and name:
            contract = self._contract()
            if contract is not None and contract.lacks(name):
                return Unreachable(
                    f"the daemon at {self._daemons.address} is older than this client and has no "
                    f"{name}. Update the daemon."
                )
        if code in _UNREACHABLE:
            why = explain(
                self._daemons.address,
                service,
                error,
                tls=self._tls,
                has_token=self._has_token,
                timeout=self.timeout,
            )
            if others := [each for each in self._daemons.addresses if each not in str(why)]:
                why.add_note(f"Nor does any daemon answer at {', '.join(others)}.")
            return why
        trailers: dict[str, Any] = dict(cast(Any, error.trailing_metadata() or ()))
        details = decode_details(trailers.get(KEY, b""))
        return Refused(
            error.details() or f"{self.target} declined without a word.",
            code=code.name,
            reason=str(trailers.get("cbench-reason", "")),
            violations=details.violations,
            metadata=details.metadata,
        )
