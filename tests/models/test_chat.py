"""The chat client against a server that is slow, overloaded, rude or wrong."""

import asyncio
import json
import logging
from email.utils import formatdate
from typing import Any

import pytest

from cbench_server.errors import CallFailed, InvalidInput
from cbench_server.models.chat import ChatClient, ChatFailed, ModelAway, pause
from cbench_server.models.endpoint import endpoint_of
from tests.fixtures.ports import held_port

KEY = "sk-very-secret-123"
QUESTION = [{"role": "user", "content": "Where?"}]


def client_for(server: Any, **settings: Any) -> ChatClient:
    return ChatClient(server.url, "m", **{"retry_base_delay": 0.001, "timeout": 20.0} | settings)


async def failure_of(client: ChatClient) -> ChatFailed:
    with pytest.raises(ChatFailed) as caught:
        await client.complete(QUESTION)
    await client.close_connections()
    return caught.value


async def test_a_request_carries_model_messages_key_and_extra_keys(server: Any) -> None:
    server.say("Paris", total_tokens=9)
    client = ChatClient(server.url + "/", "m", api_key=KEY, extra_body={"temperature": 0})
    reply = await client.complete(QUESTION)
    await client.close_connections()
    assert (reply.content, reply.usage) == ("Paris", {"total_tokens": 9})
    assert server.paths == ["/v1/chat/completions"]
    assert server.requests == [{"model": "m", "messages": QUESTION, "temperature": 0}]
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("given", "endpoint"),
    [
        ("http://h", "http://h/v1/chat/completions"),
        ("http://h/", "http://h/v1/chat/completions"),
        ("http://h/v1", "http://h/v1/chat/completions"),
        ("http://h/v1/", "http://h/v1/chat/completions"),
        ("http://h/openai/v1", "http://h/openai/v1/chat/completions"),
        ("http://h/v1/chat/completions", "http://h/v1/chat/completions"),
        ("http://h/api/v4/chat/completions/", "http://h/api/v4/chat/completions"),
    ],
)
def test_what_a_url_has_of_the_path_is_not_added_again(given: str, endpoint: str) -> None:
    assert endpoint_of(given) == endpoint


@pytest.mark.parametrize("status", [200, 403, 404, 405, 500, 503])
async def test_a_server_that_answers_anything_is_there(server: Any, status: int) -> None:
    server.listing = status
    client = ChatClient(f"{server.url}/v1", "m", api_key=KEY)
    await client.probe()
    await client.close_connections()
    assert server.paths == ["/v1/models"]
    assert server.requests == []
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("status", "answer", "said"),
    [
        (404, '{"error": "nothing here"}', 'answered 404 Not Found: "nothing here"'),
        (405, "", "answered 405 Method Not Allowed"),
        (501, "", "answered 501 Not Implemented"),
        (301, "", "answered 301 Moved Permanently"),
        (401, "{}", "answered 401 Unauthorized"),
        (200, "<html>Welcome</html>", "answered with something that is not JSON: "),
    ],
)
@pytest.mark.parametrize("listing", [404, 405, 308])
async def test_a_server_that_is_no_model_s_is_found_by_asking_nothing(
    server: Any, listing: int, status: int, answer: str, said: str
) -> None:
    server.listing, server.refuses_nothing_asked = listing, False
    server.answer(status, answer)
    client = ChatClient(server.url, "m")
    with pytest.raises(ChatFailed) as caught:
        await client.probe()
    await client.close_connections()
    assert f"{server.url}/v1/chat/completions {said}" in caught.value.failure.message
    assert server.requests == [{"model": "m"}]


async def test_a_web_site_is_no_list_of_models(server: Any) -> None:
    server.listing, server.listed, server.refuses_nothing_asked = 200, "<html>", False
    server.answer(200, "<html>")
    client = ChatClient(server.url, "m")
    with pytest.raises(ChatFailed, match="not JSON"):
        await client.probe()
    await client.close_connections()


async def test_a_probe_tells_who_does_not_listen_and_who_wants_a_key(server: Any) -> None:
    server.listing = 401
    dead = f"http://127.0.0.1:{held_port()}"
    told = {}
    for url in (server.url, dead, "http://no-such-host.invalid"):
        client = ChatClient(url, "m")
        with pytest.raises(ChatFailed) as caught:
            await client.probe()
        await client.close_connections()
        told[url] = caught.value.failure
    assert told[server.url].reason == "UNAUTHENTICATED"
    assert told[server.url].message.startswith(f"{server.url}/v1/models answered 401 Unauthorized")
    assert told[dead].message == f"{dead}/v1/models cannot be reached: Connection refused"
    assert "cannot be reached" in told["http://no-such-host.invalid"].message


async def test_without_a_key_there_is_no_authorization_header(server: Any) -> None:
    server.say("Paris")
    client = client_for(server)
    await client.complete(QUESTION)
    await client.close_connections()
    assert "authorization" not in server.headers[0]


async def test_one_connection_serves_many_questions(server: Any) -> None:
    server.say("Paris")
    client = client_for(server)
    for _ in range(5):
        await client.complete(QUESTION)
    await client.close_connections()
    assert (server.connections, len(server.requests)) == (1, 5)


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
async def test_a_status_that_may_pass_is_retried(server: Any, status: int) -> None:
    server.answer(status, "busy")
    server.say("Paris")
    client = client_for(server)
    assert (await client.complete(QUESTION)).content == "Paris"
    await client.close_connections()
    assert len(server.requests) == 2


@pytest.mark.parametrize("trouble", ["drop", "break_off", "hang"])
async def test_a_connection_that_fails_is_retried(server: Any, trouble: str) -> None:
    getattr(server, trouble)()
    server.say("Paris")
    # Short enough to notice a server that hangs, long enough for one that answers.
    client = client_for(server, timeout=1.0 if trouble == "hang" else 20.0)
    assert (await client.complete(QUESTION)).content == "Paris"
    await client.close_connections()
    assert len(server.requests) >= 2


async def test_a_server_that_dies_with_a_request_is_away_and_was_asked() -> None:
    """One that breaks off and is there has failed; one that is gone is waited for."""

    async def die(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        listening.close()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{")
        writer.close()

    listening = await asyncio.start_server(die, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    client = ChatClient(f"http://127.0.0.1:{port}", "m", max_retries=0)
    error = await failure_of(client)
    assert isinstance(error, ModelAway)
    assert error.was_asked
    assert "broke off" in str(error)


async def test_retries_end_and_the_failure_says_how_many_there_were(server: Any) -> None:
    server.answer(429, '{"error": {"message": "still   busy"}}')
    error = await failure_of(client_for(server, max_retries=2))
    assert len(server.requests) == 3
    assert (error.failure.reason, error.failure.attempts) == ("RESOURCE_EXHAUSTED", 3)
    assert error.failure.retryable
    assert str(error) == (
        f"{server.url}/v1/chat/completions, asked 3 times, "
        'answered 429 Too Many Requests: "still busy"'
    )


@pytest.mark.parametrize("status", [307, 400, 401, 403, 404, 422])
async def test_a_status_that_will_not_pass_fails_at_once(server: Any, status: int) -> None:
    server.answer(status, '{"error": "no such model"}', location="/elsewhere")
    error = await failure_of(client_for(server))
    assert len(server.requests) == 1
    assert not error.failure.retryable
    assert str(status) in str(error)
    assert ("no such model" in str(error)) == (status >= 400)


async def test_nonsense_fails_at_once(server: Any) -> None:
    server.answer(200, "<html>")
    error = await failure_of(client_for(server))
    assert (len(server.requests), error.failure.reason) == (1, "BAD_RESPONSE")


async def test_a_body_that_is_not_the_gzip_it_claims_fails_at_once(server: Any) -> None:
    server.answer(200, "plain", content_encoding="gzip")
    error = await failure_of(client_for(server))
    assert (len(server.requests), error.failure.reason) == (1, "BAD_RESPONSE")


@pytest.mark.parametrize("form", ["seconds", "date"])
async def test_a_past_retry_after_does_not_hinder_the_retry(server: Any, form: str) -> None:
    server.answer(429, retry_after="0" if form == "seconds" else formatdate(0, usegmt=True))
    server.say("Paris")
    client = client_for(server)
    assert (await client.complete(QUESTION)).content == "Paris"
    await client.close_connections()


@pytest.mark.parametrize("form", ["seconds", "date"])
async def test_a_server_that_asks_for_too_long_a_wait_is_given_up_on(
    server: Any, form: str
) -> None:
    # 4102444800 is the first second of 2100.
    server.answer(429, retry_after="86400" if form == "seconds" else formatdate(4102444800))
    error = await failure_of(client_for(server))
    assert len(server.requests) == 1
    assert "asked to wait" in str(error)
    assert error.retry_delay is not None
    assert error.retry_delay >= 86400


@pytest.mark.parametrize(
    ("attempt", "jitter", "asked", "seconds"),
    [
        (1, 1.0, None, 0.5),
        (2, 1.0, None, 1.0),
        (3, 1.0, None, 2.0),
        (3, 0.25, None, 0.5),
        (10_000, 1.0, None, 120.0),
        (1, 1.0, 77.0, 77.0),
        (3, 1.0, 1.0, 2.0),
        (1, 1.0, 121.0, None),
    ],
)
def test_waits_double_are_jittered_and_heed_what_was_asked(
    attempt: int, jitter: float, asked: float | None, seconds: float | None
) -> None:
    assert pause(attempt, 0.5, jitter, asked) == seconds


async def test_nobody_listening_is_unavailable() -> None:
    url = f"http://127.0.0.1:{held_port()}"
    error = await failure_of(ChatClient(url, "m", max_retries=1, retry_base_delay=0.001))
    assert (error.failure.reason, error.failure.attempts) == ("UNAVAILABLE", 2)
    assert "cannot be reached: Connection refused" in str(error)


async def test_an_answer_without_end_is_cut_short(
    server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cbench_server.models.chat.MAX_ANSWER_BYTES", 1 << 20)
    server.say("x" * (2 << 20))
    error = await failure_of(client_for(server))
    assert "more than 1 MB" in str(error)


@pytest.mark.parametrize("content", [b"bytes", "\ud800", float("nan")])
async def test_what_is_no_json_is_refused_before_it_is_sent(server: Any, content: Any) -> None:
    client = client_for(server)
    with pytest.raises(ChatFailed, match="as JSON") as caught:
        await client.complete([{"role": "user", "content": content}])
    assert caught.value.failure.reason == "BAD_REQUEST"
    assert server.requests == []


def test_a_client_outlives_the_loop_it_was_used_on(server: Any) -> None:
    server.say("Paris")
    client = client_for(server)

    async def ask() -> str:
        content = (await client.complete(QUESTION)).content
        await client.close_connections()
        return content

    assert [asyncio.run(ask()) for _ in range(3)] == ["Paris"] * 3


async def test_the_key_is_in_no_message_repr_or_log(
    server: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    said = f"Incorrect API key provided: {KEY}. Header: Bearer {KEY}"
    server.answer(401, json.dumps({"error": {"message": said}}))
    client = client_for(server, api_key=KEY)
    error = await failure_of(client)
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert "Incorrect API key provided: [key]" in str(error)
    said = [repr(error), repr(error.failure), repr(client), str(client), caplog.text]
    assert not any(KEY in text for text in said)
    assert error.__cause__ is None
    assert error.__suppress_context__


def test_a_key_from_a_file_loses_its_line_break_and_a_broken_one_is_not_quoted() -> None:
    ChatClient("http://h", "m", api_key=f"{KEY}\n")
    with pytest.raises(InvalidInput) as caught:
        ChatClient("http://h", "m", api_key="sk-one\nsk-two")
    assert "sk-" not in str(caught.value)


@pytest.mark.parametrize("url", ["localhost:80", "", "ftp://h", "http://", "http://h:99999999"])
def test_what_is_no_base_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="not a base URL"):
        ChatClient(url, "m")


@pytest.mark.parametrize(
    "url",
    [
        "http://u:hidden@h",
        "http://h?key=hidden",
        "http://h#hidden",
        "http://h/hidden#",
        "http://h/hidden?",
    ],
)
def test_a_secret_in_the_url_is_refused_and_not_quoted(url: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        ChatClient(url, "m")
    assert "hidden" not in str(caught.value)


def test_a_failed_chat_is_both_a_failed_call_and_a_runtime_error() -> None:
    assert issubclass(ChatFailed, CallFailed)
    assert issubclass(ChatFailed, RuntimeError)
