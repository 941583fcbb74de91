"""The proxy sends what the model's own proxy sends, and loses nothing of what comes back."""

import asyncio
import json
from typing import Any

import pytest

from cbench_server.models.chat import ChatFailed
from cbench_server.systems.openai_proxy import OpenAIProxy, messages_for
from cbench_server.types import System

CONTEXT = {"role": "system", "content": "Paris is in France."}


def proxy_for(server: Any, **settings: Any) -> OpenAIProxy:
    return OpenAIProxy(server.url, retry_base_delay=0.001, **settings)


@pytest.mark.parametrize(
    ("example", "messages"),
    [
        (
            {"context": "Paris is in France.", "question": "Where?"},
            [CONTEXT, {"role": "user", "content": "Where?"}],
        ),
        (
            {"context": "Paris is in France.", "question": ""},
            [CONTEXT, {"role": "user", "content": ""}],
        ),
        ({"context": "Say hi.", "question": None}, [{"role": "user", "content": "Say hi."}]),
        ({"context": "Say hi."}, [{"role": "user", "content": "Say hi."}]),
        ({"context": None}, [{"role": "user", "content": ""}]),
        (
            {"context": "c", "question": "q", "turns": [{"role": "user", "content": "t"}]},
            [{"role": "user", "content": "t"}, {"role": "user", "content": "q"}],
        ),
        (
            {
                "question": "t",
                "turns": [{"role": "user", "content": "t", "speaker": "Ann", "session": "1"}],
            },
            [{"role": "user", "content": "Ann: t"}],
        ),
        ({"context": "Say hi.", "question": "Say hi."}, [{"role": "user", "content": "Say hi."}]),
    ],
    ids=[
        "question",
        "empty-question",
        "null-question",
        "context",
        "null-context",
        "turns",
        "turns-with-speakers",
        "question-is-context",
    ],
)
def test_messages_follow_the_example(example: dict[str, Any], messages: list[Any]) -> None:
    assert messages_for(example) == messages
    prompt = {"role": "system", "content": "Be brief."}
    assert messages_for(example, "Be brief.") == [prompt, *messages]


def test_process_adds_response_and_usage_and_keeps_the_rest(server: Any) -> None:
    server.say("France", total_tokens=12)
    proxy = proxy_for(server)
    example = {"id": 2**60, "context": "c", "question": "q", "extra": [1]}
    assert proxy.process(example) == example | {
        "response": "France",
        "api_usage": {"total_tokens": 12},
    }
    assert "response" not in example
    assert server.requests[0]["model"] == "gpt-3.5-turbo"
    proxy.close()


def test_without_usage_there_is_no_api_usage(server: Any) -> None:
    server.say(None)
    proxy = proxy_for(server)
    assert proxy.process({"context": "c"}) == {"context": "c", "response": ""}
    proxy.close()


async def test_process_works_inside_a_running_loop(server: Any) -> None:
    server.say("France")
    proxy = proxy_for(server)
    assert asyncio.get_running_loop().is_running()
    assert proxy.process({"context": "c"})["response"] == "France"
    assert (await proxy.aprocess({"context": "c"}))["response"] == "France"
    await proxy.close_connections()
    proxy.close()


def test_process_keeps_its_connection_between_calls(server: Any) -> None:
    server.say("France")
    proxy = proxy_for(server)
    for _ in range(3):
        proxy.process({"context": "c"})
    proxy.close()
    assert server.connections == 1


def test_build_messages_replaces_everything(server: Any) -> None:
    server.echo_messages()
    proxy = proxy_for(
        server,
        system_prompt="ignored",
        build_messages=lambda example: [{"role": "user", "content": example["id"]}],
    )
    answer = proxy.process({"id": "seven", "context": "c"})
    assert json.loads(answer["response"]) == [{"role": "user", "content": "seven"}]
    proxy.close()


def test_extra_body_overrides_the_model(server: Any) -> None:
    server.say("France")
    proxy = proxy_for(server, extra_body={"model": "other", "temperature": 0})
    proxy.process({"context": "c"})
    proxy.close()
    assert server.requests[0]["model"] == "other"
    assert server.requests[0]["temperature"] == 0


def test_a_conversation_grows_with_every_turn_and_its_usage_adds_up(server: Any) -> None:
    server.say("Hello", total_tokens=2)
    server.say("Bye", total_tokens=3)
    proxy = proxy_for(server, system_prompt="Be brief.")
    turns = [{"role": "user", "content": "hi"}, {"role": "user", "content": "leave"}]
    replies = proxy.process_conversation(turns)
    proxy.close()
    assert replies == [
        {"role": "assistant", "content": "Hello"},
        {"role": "assistant", "content": "Bye", "api_usage": {"total_tokens": 5}},
    ]
    assert server.requests[1]["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "Hello"},
        {"role": "user", "content": "leave"},
    ]


def test_a_conversation_without_turns_has_no_replies(server: Any) -> None:
    assert proxy_for(server).process_conversation([]) == []


def test_a_refusal_is_a_runtime_error_with_a_failure(server: Any) -> None:
    server.answer(400, '{"object": "error", "message": "context too long"}')
    proxy = proxy_for(server)
    with pytest.raises(RuntimeError, match="context too long") as caught:
        proxy.process({"context": "c"})
    proxy.close()
    assert isinstance(caught.value, ChatFailed)
    assert caught.value.failure.origin == "system"
    assert caught.value.failure.reason == "HTTP_400"


@pytest.mark.parametrize(
    ("given", "sent"), [(None, "Bearer from-env"), ("own", "Bearer own"), ("", None)]
)
def test_the_key_is_the_one_given_else_the_environments_and_empty_means_none(
    server: Any, monkeypatch: pytest.MonkeyPatch, given: str | None, sent: str | None
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "from-env")
    server.say("France")
    proxy = proxy_for(server, api_key=given)
    proxy.process({"context": "c"})
    proxy.close()
    assert server.headers[0].get("authorization") == sent


def test_two_ports_have_two_names() -> None:
    assert OpenAIProxy("http://localhost:8080").name == "openai_proxy_localhost:8080"
    assert OpenAIProxy("https://api.example.com/").name == "openai_proxy_api.example.com"
    assert OpenAIProxy("http://localhost:1", name="mine").name == "mine"
    assert isinstance(OpenAIProxy("http://localhost:1"), System)


def test_the_version_changes_with_whatever_decides_the_answers() -> None:
    settings: list[dict[str, Any]] = [
        {},
        {"model": "m2"},
        {"system_prompt": "p"},
        {"extra_body": {"temperature": 0}},
    ]
    versions = {OpenAIProxy("http://h", **setting).version for setting in settings}
    assert len(versions) == 4
    assert OpenAIProxy("http://h", api_key="k").version in versions
    assert OpenAIProxy("http://h", build_messages=lambda example: []).version == ""
