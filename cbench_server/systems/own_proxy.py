"""A proxy that a user made in Python, asked as the daemon asks one: with the dataset's prompt."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from cbench_server.errors import CallFailed
from cbench_server.models.level import Level
from cbench_server.models.messages import Message
from cbench_server.models.model import Model
from cbench_server.models.reader import Reader
from cbench_server.systems.caller import Call
from cbench_server.systems.openai_proxy import OpenAIProxy
from cbench_server.systems.proxy_caller import ProxyCaller, Saying


class OwnProxyCaller(ProxyCaller):
    """Keeps to the retries and the time of an attempt that the object was made with.

    All attempts and the pauses between them have to fit into the row's time. Nobody restarts
    a model for an evaluation in a script, so that one which is away is not waited for.
    """

    def __init__(self, proxy: OpenAIProxy, name: str) -> None:
        super().__init__(
            proxy, model_of(proxy, "system"), name=name, location=proxy.client.endpoint
        )
        self._proxy = proxy

    async def _ask(
        self,
        call: Call,
        messages: Sequence[Message],
        settings: Mapping[str, Any],
        timeout: float,
        said: Saying,
    ) -> None:
        attempt, left = 0, timeout
        while True:
            attempt += 1
            started = time.monotonic()
            try:
                await super()._ask(call, messages, settings, left, said)
                return
            except CallFailed as error:
                wait = self._proxy.client.wait_after(error, attempt)
                lost = time.monotonic() - started + (wait or 0.0)
                if wait is None or lost >= left:
                    origin = error.failure.origin
                    failure = replace(
                        error.failure,
                        origin="system" if origin == "transport" else origin,
                        attempts=attempt,
                        retryable=False,
                    )
                    raise CallFailed(failure) from error
            said.lost_seconds += lost
            left -= lost
            await asyncio.sleep(wait)

    async def close(self) -> None:
        """Close the connections, also those by which the model was found."""
        await super().close()
        await self._proxy.close_connections()


def model_of(proxy: OpenAIProxy, origin: str) -> Model:
    """Return the model of a proxy; `origin` is whom to blame for a failure."""
    return Model(
        proxy.client.once(),
        origin=origin,
        system_prompt=proxy.system_prompt or "",
        price=proxy.price,
    )


def reader_of(proxy: OpenAIProxy) -> Reader:
    """Return a reader that asks the model of a proxy."""
    return Reader(model_of(proxy, "reader"), Level(), proxy.client.timeout)
