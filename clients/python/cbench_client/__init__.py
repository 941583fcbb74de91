"""Serve a system to cbench-server, or drive it, from Python.

Serve any object with a `name` and a `process` method::

    from cbench_client import serve
    serve(MySystem(), "127.0.0.1:50061")

Call one in another process, or follow a run on a daemon::

    from cbench_client import BenchClient, RemoteSystem
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cbench_client._gen.specs import (
        DatasetRef,
        EvaluatorRef,
        MetricRef,
        ModelRef,
        RunSpec,
        SystemRef,
    )
    from cbench_client.bench.client import BenchClient
    from cbench_client.bench.rows import Row, row_to_dict
    from cbench_client.errors import (
        CannotServe,
        ClientError,
        InsecureToken,
        InvalidSpec,
        NotServable,
        Refused,
        RemoteFailure,
        Unencodable,
        Unreachable,
    )
    from cbench_client.host.attachment import Attachment, attach
    from cbench_client.host.calls import current_call
    from cbench_client.host.declared import Option
    from cbench_client.host.server import Server, serve
    from cbench_client.messages.error_details import FieldViolation
    from cbench_client.remote.channel import Tls
    from cbench_client.remote.objects import RemoteEvaluator, RemoteMemorySystem, RemoteSystem

__version__ = "0.1.0"

__all__ = [
    "Attachment",
    "BenchClient",
    "CannotServe",
    "ClientError",
    "DatasetRef",
    "EvaluatorRef",
    "FieldViolation",
    "InsecureToken",
    "InvalidSpec",
    "MetricRef",
    "ModelRef",
    "NotServable",
    "Option",
    "Refused",
    "RemoteEvaluator",
    "RemoteFailure",
    "RemoteMemorySystem",
    "RemoteSystem",
    "Row",
    "RunSpec",
    "Server",
    "SystemRef",
    "Tls",
    "Unencodable",
    "Unreachable",
    "attach",
    "current_call",
    "row_to_dict",
    "serve",
]

_HOMES = {
    "Attachment": "host.attachment",
    "BenchClient": "bench.client",
    "CannotServe": "errors",
    "ClientError": "errors",
    "DatasetRef": "_gen.specs",
    "EvaluatorRef": "_gen.specs",
    "FieldViolation": "messages.error_details",
    "InsecureToken": "errors",
    "InvalidSpec": "errors",
    "MetricRef": "_gen.specs",
    "ModelRef": "_gen.specs",
    "NotServable": "errors",
    "Option": "host.declared",
    "Refused": "errors",
    "RemoteEvaluator": "remote.objects",
    "RemoteFailure": "errors",
    "RemoteMemorySystem": "remote.objects",
    "RemoteSystem": "remote.objects",
    "Row": "bench.rows",
    "RunSpec": "_gen.specs",
    "Server": "host.server",
    "SystemRef": "_gen.specs",
    "Tls": "remote.channel",
    "Unencodable": "errors",
    "Unreachable": "errors",
    "attach": "host.attachment",
    "current_call": "host.calls",
    "row_to_dict": "bench.rows",
    "serve": "host.server",
}


def __getattr__(name: str) -> Any:
    # gRPC takes a while to import, and `cbench --help` has no use for it.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
