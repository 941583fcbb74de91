"""Clients that equal judges share, of which those that are let go leave no connection open."""

import asyncio

from cbench_server.evaluators.judge import shared_clients
from tests.fixtures.model_server import ModelServer


def _client(server: ModelServer, number: int) -> shared_clients.ChatClient:
    return shared_clients.shared_client(server.url, f"model-{number}", "", 30.0, "{}")


async def test_clients_that_are_let_go_are_closed_and_can_still_be_used(
    server: ModelServer,
) -> None:
    server.say("yes")
    asked = [{"role": "user", "content": "is it?"}]
    first = _client(server, 0)
    await first.complete(asked)
    assert first._clients
    for number in range(1, shared_clients._KEPT + 1):
        assert _client(server, number) is _client(server, number)
    async with asyncio.timeout(30):
        while first._clients:
            await asyncio.sleep(0.01)
    assert _client(server, 0) is not first
    assert (await first.complete(asked)).content == "yes"
    assert not first._clients
