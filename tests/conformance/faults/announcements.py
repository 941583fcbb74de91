"""Faults in what a process says of itself."""

from collections.abc import Callable
from typing import Any

import grpc
from faults.registry import fault

from cbench_client.host import host as hosting
from cbench_client.host import services


@fault
def descriptions_lie() -> None:
    def lying(describe: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def lie(self: Any) -> Any:
            answer = describe(self)
            infos = getattr(answer, "evaluators", None) or answer.systems
            for info in infos:
                info.version, info.description, info.max_concurrency = "0", "?", 0
                info.ClearField("scores" if hasattr(info, "scores") else "capabilities")
            infos.add().CopyFrom(infos[0])
            answer.sdk = ""
            return answer

        return lie

    for name in ("describe_systems", "describe_memory", "describe_evaluators"):
        setattr(hosting.Host, name, lying(getattr(hosting.Host, name)))


@fault
def declarations_lie() -> None:
    def lying(describe: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def lie(self: Any) -> Any:
            answer = describe(self)
            for info in getattr(answer, "evaluators", None) or answer.systems:
                info.declared_options.options.add(name="two words")
                for score in getattr(info, "scores", ()):
                    score.ClearField("direction")
            return answer

        return lie

    for name in ("describe_systems", "describe_memory", "describe_evaluators"):
        setattr(hosting.Host, name, lying(getattr(hosting.Host, name)))


@fault
def hello_lies() -> None:
    hello = hosting.Host.hello

    def lie(self: Any, limit: int) -> Any:
        message = hello(self, limit)
        message.ClearField("memory_systems")
        return message

    hosting.Host.hello = lie


@fault
def descriptions_change() -> None:
    def constant(message: Any) -> Any:
        async def answer(_: bytes, context: Any) -> bytes:
            message.sdk += "."
            return message.SerializeToString()

        return grpc.unary_unary_rpc_method_handler(answer)

    services._constant = constant
