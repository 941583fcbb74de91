"""Faults of attachments."""

from typing import Any

import program
from faults.registry import fault

from cbench_client.errors import Refused
from cbench_client.host import link, session


@fault
def max_in_flight_is_ignored() -> None:
    attach = program.attach

    def generous(offered: Any, target: str, max_in_flight: Any, **settings: Any) -> None:
        attach(offered, target, **settings)

    program.attach = generous


@fault
def unknown_work_is_ignored() -> None:
    start = session.Session._start

    def ignoring(self: Any, call: Any) -> None:
        if call.WhichOneof("work") is not None:
            start(self, call)

    session.Session._start = ignoring


@fault
def it_attaches_once() -> None:
    async def once(self: Any) -> None:
        await self._attach_once()
        await self._stopping.wait()

    link.Link.keep = once


@fault
def every_refusal_is_final() -> None:
    def judge(self: Any, error: Any) -> None:
        raise Refused("refused", code=error.code().name)

    link.Link._judge = judge


@fault
def no_refusal_is_final() -> None:
    link.Link._judge = lambda self, error: None


@fault
def the_daemons_drain_is_ignored() -> None:
    read = session.Session._read

    class Undrained:
        def __init__(self, stream: Any) -> None:
            self._stream = stream

        async def read(self) -> Any:
            data = await self._stream.read()
            if isinstance(data, bytes):
                message = session.gateway_pb2.AttachResponse.FromString(data)
                message.ClearField("drain")
                return message.SerializeToString()
            return data

        def __getattr__(self, name: str) -> Any:
            return getattr(self._stream, name)

    async def deaf(self: Any) -> None:
        self._stream = Undrained(self._stream)
        await read(self)

    session.Session._read = deaf


@fault
def it_drains_in_silence() -> None:
    async def silent(self: Any) -> None:
        await self._stopping.wait()
        self._lane.close()

    session.Session._drain_when_stopping = silent
