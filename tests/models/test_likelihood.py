"""Likelihoods of given answers, asked of three kinds of servers in their own ways."""

from collections.abc import AsyncIterator, Iterator

import pytest

from cbench_server.models.chat import ChatFailed
from cbench_server.models.likelihood import (
    Echo,
    Likelihood,
    LlamaCpp,
    TokenClient,
    Vllm,
    scorer_for,
)
from tests.fixtures.likelihood_servers import LikelihoodServer, serving

DIALECTS = {"llama.cpp": LlamaCpp, "vllm": Vllm, "echo": Echo}
ASKED = [{"role": "user", "content": "The ferry leaves at six from Tarn"}]


@pytest.fixture(params=DIALECTS)
def server(request: pytest.FixtureRequest) -> Iterator[LikelihoodServer]:
    with serving(request.param) as server:
        yield server


@pytest.fixture
async def client(server: LikelihoodServer) -> AsyncIterator[TokenClient]:
    client = TokenClient(f"{server.url}/v1", "m", api_key="sk-1", retry_base_delay=0.0)
    yield client
    await client.close_connections()


async def test_a_server_is_known_by_what_it_offers(
    server: LikelihoodServer, client: TokenClient
) -> None:
    assert type(await scorer_for(client)) is DIALECTS[server.dialect]
    assert type(await scorer_for(client, "echo")) is Echo


@pytest.mark.parametrize(
    ("answer", "total", "tokens"),
    [("Tarn", -1.0, 1), ("at Orne", -6.0, 2), ("Nine o'clock sharp", -15.0, 3)],
)
async def test_all_servers_tell_the_same(
    client: TokenClient, answer: str, total: float, tokens: int
) -> None:
    scorer = await scorer_for(client)
    found = await scorer.likelihood(ASKED, answer, 64)
    assert found == Likelihood(total, tokens)
    assert found.per_token == total / tokens


async def test_of_a_long_answer_the_first_tokens_count(client: TokenClient) -> None:
    scorer = await scorer_for(client)
    found = await scorer.likelihood(ASKED, "ferry six nothing else", 2)
    assert found == Likelihood(-2.0, 2, is_cut=True)


async def test_a_server_that_is_busy_is_asked_again_with_the_key(
    server: LikelihoodServer, client: TokenClient
) -> None:
    scorer = await scorer_for(client)
    server.failures = 1
    assert (await scorer.likelihood(ASKED, "Tarn", 64)).tokens == 1
    assert {each["authorization"] for each in server.headers} == {"Bearer sk-1"}


@pytest.mark.parametrize(
    ("dialect", "lie", "said"),
    [
        ("llama.cpp", "other tokens", "did not keep to the tokens"),
        ("vllm", "one short", "told nothing of the prompt's tokens"),
        ("echo", "no echo", "does not tell how likely given tokens are"),
    ],
)
async def test_a_server_that_does_not_tell_is_named(dialect: str, lie: str, said: str) -> None:
    with serving(dialect) as server:
        server.lie = lie
        client = TokenClient(server.url, "m", max_retries=0)
        scorer = await scorer_for(client)
        with pytest.raises(ChatFailed, match=said) as caught:
            await scorer.likelihood(ASKED, "Tarn Orne", 64)
        await client.close_connections()
    assert server.url in str(caught.value)


async def test_what_a_server_calls_impossible_counts_as_very_unlikely(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tests.fixtures.likelihood_servers.UNKNOWN", -3.4e38)
    with serving("llama.cpp") as server:
        client = TokenClient(server.url, "m")
        scorer = await scorer_for(client)
        assert (await scorer.likelihood(ASKED, "Orne", 64)).log_probability == -100.0
        await client.close_connections()
