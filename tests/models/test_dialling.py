"""What is dialled is what was judged: every spelling, every list, every answer of a resolver."""

import asyncio
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from cbench_server.errors import InvalidInput, SystemUnreachable
from cbench_server.models.chat import ChatClient, ChatFailed
from cbench_server.models.dialling import Dialling, NotDialled, dialling, set_dialling

METADATA = "169.254.169.254"


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    before = dialling()
    yield
    set_dialling(before)


async def pinned(target: str, **rules: Any) -> str:
    return await Dialling.of(rules.pop("allow", ()), rules.pop("deny", ()), **rules).pin(target)


@pytest.mark.parametrize(
    "target",
    [
        f"{METADATA}:80",
        f"ipv4:{METADATA}:80",
        f"ipv4:127.0.0.1:1,{METADATA}:80",
        f"dns:{METADATA}:80",
        f"dns:///{METADATA}:80",
        "dns:169.254.169%2E254:80",
        "ipv4:169.254.169%2e254:80",
        f"ipv4:///{METADATA}:80",
        f"ipv4:/{METADATA}:80",
        f"DNS:///{METADATA}:80",
        f"IPV4:{METADATA}:80",
        f"dns://127.0.0.1:53/{METADATA}:80",
        "dns://127.0.0.1:5353/evil.example:80",
        "xds:///service",
        "vsock:2:80",
        "UNIX:/run/docker.sock",
        "2852039166:80",
        "0xa9fea9fe:80",
        "0251.0376.0251.0376:80",
        f"[::ffff:{METADATA}]:80",
        "[::a9fe:a9fe]:80",
        "[64:ff9b::a9fe:a9fe]:80",
        "[64:ff9b:1::a9fe:a9fe]:80",
        "[64:ff9b:1:a9fe:a9:fe00::]:80",
        "[64:ff9b:1:aaa9:fe:a9fe::]:80",
        "[64:ff9b:1:aabb:a9:fea9:fe00:0]:80",
        "[2002:a9fe:a9fe::1]:80",
        "[fe80::1]:80",
        "[fd00:ec2::254]:80",
        "[fd20:ce::254]:80",
        "100.100.100.200:80",
        "168.63.129.16:80",
        "ipv6:[::1]:1,[fe80::1]:80",
        "127.0.0.1",
        "127.0.0.1:80/x",
        "127.0.0.1:99999",
        "a b:80",
        ":80",
        "",
    ],
)
async def test_no_spelling_of_a_forbidden_address_passes(target: str) -> None:
    with pytest.raises(NotDialled):
        await pinned(target)


@pytest.mark.parametrize(
    ("target", "leads_to"),
    [
        ("127.0.0.1:50051", "127.0.0.1:50051"),
        ("ipv4:10.1.2.3:80", "10.1.2.3:80"),
        ("dns:///10.1.2.3:80", "10.1.2.3:80"),
        ("[::1]:80", "[::1]:80"),
        ("ipv6:[::1]:80", "[::1]:80"),
        ("unix:/run/mine.sock", "unix:/run/mine.sock"),
    ],
)
async def test_ordinary_addresses_are_dialled_as_they_are(target: str, leads_to: str) -> None:
    assert await pinned(target) == leads_to


async def test_of_a_list_the_one_that_answers_is_dialled() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        dead, port = closed.getsockname()[1], server.getsockname()[1]
        assert await pinned(f"ipv4:127.0.0.1:{dead},127.0.0.1:{port}") == f"127.0.0.1:{port}"
        assert await pinned(f"localhost:{port}") == f"127.0.0.1:{port}"


async def test_what_does_not_resolve_is_not_left_to_another_resolver() -> None:
    with pytest.raises(SystemUnreachable, match=r'no host "no-such-host\.invalid"'):
        await pinned("no-such-host.invalid:80")


async def test_lists_of_the_operator_decide_and_deny_wins() -> None:
    allow, deny = ["10.0.0.0/8", "localhost"], ["10.9.0.0/16"]
    assert await pinned("10.1.2.3:80", allow=allow, deny=deny) == "10.1.2.3:80"
    with pytest.raises(NotDialled, match="dial_deny"):
        await pinned("10.9.2.3:80", allow=allow, deny=deny)
    with pytest.raises(NotDialled, match="dial_allow"):
        await pinned("192.168.1.1:80", allow=allow)
    with pytest.raises(NotDialled, match="dial_deny"):
        await pinned("0.0.0.0:80", deny=["127.0.0.0/8"])
    with pytest.raises(NotDialled, match="dial_deny"):
        await pinned("localhost:80", allow=allow, deny=["LOCALHOST"])
    # What a translator on the way would make of an address lets nobody in, and keeps out.
    for inside in ("2002:a01:203::1", "2001:0:a01:203::1", "64:ff9b::a01:203", "::a01:203"):
        with pytest.raises(NotDialled, match="dial_allow"):
            await pinned(f"[{inside}]:80", allow=allow)
        with pytest.raises(NotDialled, match="dial_deny"):
            await pinned(f"[{inside}]:80", allow=["::/0"], deny=allow)
    assert await pinned("[::ffff:10.1.2.3]:80", allow=allow)
    assert await pinned("0.0.0.0:80", allow=["127.0.0.1"])
    with pytest.raises(NotDialled, match="link-local"):
        await pinned(f"{METADATA}:80", allow=["169.254.0.0/16"])
    with pytest.raises(NotDialled, match="socket"):
        await pinned("unix:/run/docker.sock", has_sockets=False)
    with pytest.raises(InvalidInput, match="not a valid address"):
        Dialling.of(["a b"], [])


@pytest.mark.parametrize("target", ["unix:/run/docker.sock", "unix-abstract:docker"])
async def test_sockets_are_dialled_only_where_the_lists_let_them(target: str) -> None:
    assert await pinned(target, deny=["10.0.0.0/8"]) == target
    assert await pinned(target, allow=["10.0.0.0/8", "unix:"]) == target
    with pytest.raises(NotDialled, match="dial_allow"):
        await pinned(target, allow=["10.0.0.0/8"])
    with pytest.raises(NotDialled, match="dial_deny"):
        await pinned(target, allow=["unix:"], deny=["unix:"])


def _answers(*addresses: str) -> Any:
    """A resolver that says something else each time, as one that rebinds does."""
    left = list(addresses)

    async def getaddrinfo(self: Any, host: Any, port: Any, **kwargs: Any) -> Any:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (left.pop(0), port or 0))]

    return getaddrinfo


async def test_a_name_that_rebinds_leads_to_what_was_judged(
    monkeypatch: pytest.MonkeyPatch, server: Any
) -> None:
    """The answer to a second question would be the metadata address; it is never asked."""
    loop = type(asyncio.get_running_loop())
    monkeypatch.setattr(loop, "getaddrinfo", _answers("127.0.0.1", METADATA))
    port = server.url.rpartition(":")[2]
    server.say("Paris")
    client = ChatClient(f"http://rebinding.example:{port}", "m", max_retries=0)
    for _ in range(2):
        reply = await client.complete([{"role": "user", "content": "?"}])
        assert reply.content == "Paris"
    await client.close_connections()
    assert server.headers[0]["host"] == f"rebinding.example:{port}"
    monkeypatch.setattr(loop, "getaddrinfo", _answers("10.1.2.3", METADATA))
    assert await pinned("rebinding.example:80") == "10.1.2.3:80"


async def test_a_model_s_name_is_judged_when_it_is_dialled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop = type(asyncio.get_running_loop())
    monkeypatch.setattr(loop, "getaddrinfo", _answers(METADATA))
    client = ChatClient("http://innocent.example", "m", max_retries=0)
    with pytest.raises(ChatFailed, match="link-local"):
        await client.complete([{"role": "user", "content": "?"}])
    await client.close_connections()


async def test_proxies_of_the_environment_are_used_or_named(
    server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = [{"role": "user", "content": "?"}]
    monkeypatch.setenv("http_proxy", server.url)
    monkeypatch.setenv("no_proxy", "example.com,[::1]:5")
    server.say("Paris")
    # The HTTP library takes the second for a part of example.com, and would dial it itself.
    for host in ("models.example", "badexample.com"):
        client = ChatClient(f"http://{host}", "m", max_retries=0)
        assert (await client.complete(asked)).content == "Paris"
        await client.close_connections()
        assert server.paths[-1] == f"http://{host}/v1/chat/completions"
    loop = type(asyncio.get_running_loop())
    monkeypatch.setattr(loop, "getaddrinfo", _answers(METADATA))
    client = ChatClient("http://models.example.com", "m", max_retries=0)
    with pytest.raises(ChatFailed, match="link-local"):
        await client.complete(asked)
    await client.close_connections()
    for unusable in ("socks5://127.0.0.1:9", "gopher://me:secret@127.0.0.1:9"):
        monkeypatch.setenv("http_proxy", unusable)
        client = ChatClient("http://models.example", "m", max_retries=0)
        with pytest.raises(ChatFailed, match="by way of the proxy") as failed:
            await client.complete(asked)
        assert "secret" not in str(failed.value)


async def test_bodies_of_services_that_are_no_models_are_not_told(server: Any) -> None:
    """Whoever names a URL must not read what an internal service answers there."""
    client = ChatClient(server.url, "m", max_retries=0)
    for status, body in (
        (404, "INTERNAL secret=hunter2"),
        (403, '{"detail": "secret=hunter2"}'),
        (500, '{"error": "secret=hunter2"}'),
        (302, '{"error": "secret=hunter2"}'),
        (200, "secret=hunter2"),
        (200, '{"token": "secret=hunter2"}'),
        (200, '{"choices": [{"message": {"content": ["secret=hunter2"]}}]}'),
    ):
        server.steps.clear()
        server.answer(status, body)
        with pytest.raises(ChatFailed) as caught:
            await client.complete([{"role": "user", "content": "?"}])
        assert "hunter2" not in str(caught.value), (status, body)
    await client.close_connections()


async def test_a_key_that_is_said_back_is_masked_in_answers_as_well(server: Any) -> None:
    server.say("Your key is sk-canary-0123456789.")
    client = ChatClient(server.url, "m", api_key="sk-canary-0123456789")
    reply = await client.complete([{"role": "user", "content": "?"}])
    await client.close_connections()
    assert reply.content == "Your key is [key]."
