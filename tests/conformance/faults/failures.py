"""Faults with names, bad input and failures."""

import os
from typing import Any

from faults.registry import fault

from cbench_client.errors import RemoteFailure
from cbench_client.host import host as hosting
from cbench_client.host import limits, services
from cbench_client.messages import convert


@fault
def any_name_will_do() -> None:
    def find(self: Any, kind: str, request: Any) -> Any:
        return next(iter(self._offers[kind][1].values()))

    hosting.Host.find = find


@fault
def the_empty_name_is_unknown() -> None:
    find = hosting.Host.find

    def strict(self: Any, kind: str, request: Any) -> Any:
        if kind != "score" and not request.system:
            raise RemoteFailure("no name", reason="UNKNOWN_SYSTEM")
        return find(self, kind, request)

    hosting.Host.find = strict


@fault
def invalid_values_are_taken() -> None:
    value_from, id_from = convert.value_from_proto, convert.id_from_proto

    def lenient(message: Any, path: str = "value") -> Any:
        is_unset = message.WhichOneof("kind") in (None, "null_value")
        return None if is_unset else value_from(message, path)

    convert.value_from_proto = lenient
    convert.id_from_proto = lambda m: id_from(m) if m.WhichOneof("kind") else None


@fault
def garbage_is_unavailable() -> None:
    services._undecodable = lambda message, error: RemoteFailure("?", reason="UNAVAILABLE")


@fault
def garbage_is_deadly() -> None:
    services._undecodable = lambda message, error: os._exit(1)


@fault
def failures_have_no_name() -> None:
    def nameless(error: BaseException, origin: str) -> RemoteFailure:
        return RemoteFailure("something went wrong", reason="INTERNAL")

    limits.failure_of = nameless


@fault
def failures_have_no_stack() -> None:
    failure_of = limits.failure_of

    def stackless(error: BaseException, origin: str) -> RemoteFailure:
        failure = failure_of(error, origin)
        failure.stack_trace = ""
        return failure

    limits.failure_of = stackless


@fault
def trailers_of_any_size() -> None:
    services._MAX_DETAILS = 10**6


@fault
def everything_is_refused() -> None:
    def refuse(self: Any, *arguments: Any) -> Any:
        raise RemoteFailure("no", reason="UNAVAILABLE", retryable=True)

    hosting.Host.submit = refuse
