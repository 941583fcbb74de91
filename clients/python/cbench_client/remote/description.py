"""Descriptions of the systems that a process serves."""

from dataclasses import dataclass

from google.protobuf.message import DecodeError

from cbench_client._gen.cbench.v1 import system_pb2
from cbench_client.errors import Unreachable
from cbench_client.messages.options import DeclaredOptions, declared_options

SERVICE = "cbench.v1.System"


@dataclass(frozen=True)
class SystemDescription:
    """What a process says about one system it serves."""

    name: str
    version: str
    description: str
    max_concurrency: int | None
    streams: bool
    converses: bool
    sdk: str
    declared: DeclaredOptions | None = None
    """The options it takes; None where it does not say."""


def read_descriptions(data: bytes, target: str) -> list[SystemDescription]:
    """Decode an answer to Describe, or raise Unreachable."""
    try:
        response = system_pb2.SystemDescribeResponse.FromString(data)
    except DecodeError:
        raise Unreachable(
            f"{target} answered Describe with bytes that cannot be decoded. "
            f"Does it serve another version of {SERVICE}?"
        ) from None
    if not response.systems:
        raise Unreachable(f"{target} answers, but serves no system. Register one there.")
    return [read_info(info, response.sdk) for info in response.systems]


def read_info(info: system_pb2.SystemInfo, sdk: str) -> SystemDescription:
    """Decode what is said of one system."""
    return SystemDescription(
        name=info.name,
        version=info.version,
        description=info.description,
        max_concurrency=info.max_concurrency if info.HasField("max_concurrency") else None,
        streams=system_pb2.CAPABILITY_STREAM in info.capabilities,
        converses=system_pb2.CAPABILITY_CONVERSATION in info.capabilities,
        sdk=sdk,
        declared=declared_options(info),
    )
