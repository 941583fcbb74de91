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
    from cbench_client.attachment import Attachment, attach
    from cbench_client.bench import BenchClient
    from cbench_client.calls import current_call
    from cbench_client.channel import InsecureToken, Tls
    from cbench_client.errors import (
        ClientError,
        Refused,
        RemoteFailure,
        Unencodable,
        Unreachable,
    )
    from cbench_client.remote import RemoteEvaluator, RemoteMemorySystem, RemoteSystem
    from cbench_client.rows import row_to_dict
    from cbench_client.server import Server, serve
    from cbench_client.spec import InvalidSpec

__version__ = "0.1.0"

__all__ = [
    "Attachment",
    "BenchClient",
    "ClientError",
    "InsecureToken",
    "InvalidSpec",
    "Refused",
    "RemoteEvaluator",
    "RemoteFailure",
    "RemoteMemorySystem",
    "RemoteSystem",
    "Server",
    "Tls",
    "Unencodable",
    "Unreachable",
    "attach",
    "current_call",
    "row_to_dict",
    "serve",
]

_HOMES = {
    "Attachment": "attachment",
    "BenchClient": "bench",
    "ClientError": "errors",
    "InsecureToken": "channel",
    "InvalidSpec": "spec",
    "Refused": "errors",
    "RemoteEvaluator": "remote",
    "RemoteFailure": "errors",
    "RemoteMemorySystem": "remote",
    "RemoteSystem": "remote",
    "Server": "server",
    "Tls": "channel",
    "Unencodable": "errors",
    "Unreachable": "errors",
    "attach": "attachment",
    "current_call": "calls",
    "row_to_dict": "rows",
    "serve": "server",
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
