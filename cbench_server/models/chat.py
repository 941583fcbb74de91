"""A client for models behind an OpenAI-compatible endpoint; proxies, readers and judges use it.

httpx is imported with the first client: not with this module, because it takes longer than
`cbench --help` may take to answer, and not with the first call, whose time is measured.
"""

import asyncio
import copy
import functools
import json
import math
import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cbench_server.clocks.standstill import time_awake
from cbench_server.errors import CallFailed
from cbench_server.limits import MAX_ANSWER_BYTES
from cbench_server.models.chat_answer import (
    MAX_WAIT_S,
    ChatReply,
    Trouble,
    cause_of,
    is_document,
    not_json,
    parse_reply,
    refusal,
)
from cbench_server.models.dialling import NotDialled, dialling
from cbench_server.models.endpoint import checked_host, checked_key, endpoint_of
from cbench_server.models.messages import Message
from cbench_server.models.silence import UNWILLING, is_silent
from cbench_server.models.tracing import UNTRACED, called
from cbench_server.results import Failure

if TYPE_CHECKING:
    import ssl

    import httpx

PROBE_SECONDS = 5.0
# What is at such an address is elsewhere, or is not asked in this way.
_NOT_HERE = frozenset({301, 302, 303, 307, 308, 404, 405, 410})
_MAX_MESSAGE = 400
_SHORT_KEY = 8
_STILL_SILENT_S = 1.0
_AWAY = {"retryable": True, "is_away": True}


class ChatFailed(CallFailed, RuntimeError):
    """A model gave no answer; `failure` says why and whether asking again may help.

    `usage` is what the server says that it used all the same, if anything, and
    `is_free` whether it did not do what was asked, and charges nothing.
    """

    usage: dict[str, Any] | None = None
    is_free = False


class ModelAway(ChatFailed):
    """Nobody is there to ask. `was_asked` is whether the question may have reached it before."""

    was_asked = False


class ChatClient:
    """Asks one model, over connections it keeps, and tries again where that may help.

    It may be used from several event loops; each gets its own connections,
    which `close_connections` closes. `timeout` bounds one attempt, from
    connecting to the last byte of the answer. Keys of `extra_body` override
    the model and the messages.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        timeout: float = 30.0,
        max_retries: int = 3,
        retry_base_delay: float = 1.0,
        extra_body: Mapping[str, Any] | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        load_http()
        self.host = checked_host(base_url)
        self.endpoint = endpoint_of(base_url)
        self.model = model
        self.extra_body = dict(extra_body or {})
        self._key = checked_key(api_key)
        self._timeout = timeout
        self._max_retries = max_retries
        self._retry_base_delay = retry_base_delay
        self._jitter = jitter
        self._dialling = dialling()
        self._silent_at: float | None = None
        self._clients: dict[asyncio.AbstractEventLoop, httpx.AsyncClient] = {}

    async def complete(
        self,
        messages: Sequence[Message],
        settings: Mapping[str, Any] | None = None,
        timeout: float = math.inf,
    ) -> ChatReply:
        """Return the model's answer; raise ChatFailed once nothing is left to try.

        `settings` are keys of this request alone; those of `extra_body` override them, and
        with None leave them out. `timeout` may shorten an attempt.
        """
        body = self._encode(messages, settings or {})
        attempt = 0
        while True:
            attempt += 1
            try:
                with called("chat", **{"cbench.model": self.model}) as trace:
                    answer = await self._post(body, trace, timeout=timeout)
                reply = parse_reply(answer)
            except Trouble as trouble:
                wait = self._wait(trouble, attempt)
                if wait is None:
                    # Not chained: the message says it all, and has been cleared of the key.
                    raise self._failed(trouble, attempt) from None
            else:
                # A server that was given the key may say it back.
                return replace(reply, content=self._cleared(reply.content))
            await asyncio.sleep(wait)

    async def probe(self) -> None:
        """Make sure that a server of models is there which takes our key; raise ChatFailed if not.

        Asks for the list of models. A server that has none is sent a chat without messages,
        which none answers with a completion: so nothing is paid for. One that is too busy to
        say is there all the same.
        """
        url = self._models_url
        try:
            status, answer = await self._ask_once("GET", url)
            if status in _NOT_HERE or (status == 200 and not is_document(answer)):
                url = self.endpoint
                status, answer = await self._ask_once("POST", url, self._nothing)
        except Trouble as trouble:
            raise self._failed(trouble, 1, url) from None
        if status in _NOT_HERE or status == 401 or (status == 501 and url == self.endpoint):
            raise self._failed(refusal(status, None, answer, now=time.time()), 1, url)
        if status == 200 and not is_document(answer):
            raise self._failed(not_json(answer), 1, url)

    @property
    def _models_url(self) -> str:
        return self.endpoint.removesuffix("/chat/completions") + "/models"

    @property
    def _nothing(self) -> bytes:
        """A request with all but the messages."""
        return json.dumps({"model": self.model} if self.model else {}).encode()

    async def _ask_once(
        self, method: str, url: str, body: bytes | None = None
    ) -> tuple[int, bytes]:
        """Return the status and the answer; a status of 0 for a server that breaks off."""
        import httpx

        timeout = httpx.Timeout(PROBE_SECONDS)
        try:
            async with (
                asyncio.timeout(PROBE_SECONDS),
                self._client().stream(method, url, timeout=timeout, content=body) as response,
            ):
                return response.status_code, await _read(response)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise Trouble("UNAVAILABLE", f"cannot be reached: {cause_of(error)}") from None
        except (httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
            raise Trouble("BAD_REQUEST", f"cannot be asked: {_named(error)}") from None
        except NotDialled as error:
            raise Trouble("BAD_REQUEST", f"is not asked: {error}") from None
        except (httpx.HTTPError, TimeoutError):
            return 0, b""

    @property
    def timeout(self) -> float:
        """Seconds for one attempt."""
        return self._timeout

    def once(self) -> "ChatClient":
        """Return a client of the same model that tries once, for who repeats requests itself."""
        twin = copy.copy(self)
        twin._max_retries, twin._clients = 0, {}
        return twin

    def with_body(self, extra: Mapping[str, Any]) -> "ChatClient":
        """Return a client of the same model whose requests have further keys."""
        twin = copy.copy(self)
        twin.extra_body, twin._clients = {**self.extra_body, **extra}, {}
        return twin

    def wait_after(self, error: CallFailed, attempt: int) -> float | None:
        """Return the seconds to wait after an attempt that failed; None to give up."""
        if not error.failure.retryable or attempt > self._max_retries:
            return None
        return pause(attempt, self._retry_base_delay, self._jitter(), error.retry_delay)

    async def close_connections(self) -> None:
        """Close the connections of the running loop; a later call opens new ones."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    def _encode(self, messages: Sequence[Message], settings: Mapping[str, Any]) -> bytes:
        body = {"model": self.model, "messages": list(messages), **settings, **self.extra_body}
        body = {name: value for name, value in body.items() if value is not None}
        try:
            return json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
        except (TypeError, ValueError, RecursionError) as error:
            trouble = Trouble(
                "BAD_REQUEST", f"cannot be sent the request as JSON: {error}", is_free=True
            )
            raise self._failed(trouble, 0) from None

    async def _post(
        self,
        body: bytes,
        trace: Mapping[str, str] = UNTRACED,
        url: str = "",
        timeout: float = math.inf,
    ) -> bytes:
        import httpx

        seconds = min(timeout, self._timeout)
        if self._silent_at is not None and await self.is_silent():
            raise Trouble("UNAVAILABLE", "answers no request", **_AWAY, is_free=True)
        try:
            async with (
                time_awake(seconds),
                self._client().stream(
                    "POST", url or self.endpoint, content=body, headers=trace
                ) as response,
            ):
                answer = await _read(response)
        except TimeoutError:
            late = f"did not answer within {seconds:g}s"
            if await self.is_silent():
                raise _gone(f"{late}, nor anything else") from None
            raise Trouble("DEADLINE_EXCEEDED", late, retryable=True) from None
        except (httpx.LocalProtocolError, httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
            raise Trouble(
                "BAD_REQUEST", f"cannot be asked: {_named(error)}", is_free=True
            ) from None
        except NotDialled as error:
            raise Trouble("BAD_REQUEST", f"is not asked: {error}", is_free=True) from None
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise Trouble(
                "UNAVAILABLE", f"cannot be reached: {cause_of(error)}", **_AWAY, is_free=True
            ) from None
        except httpx.TransportError as error:
            broken = f"broke off the connection: {_named(error)}"
            if await self.is_silent():
                raise _gone(f"{broken}, and is gone") from None
            raise Trouble("UNAVAILABLE", broken, retryable=True) from None
        except httpx.HTTPError as error:
            raise Trouble("BAD_RESPONSE", f"cannot be read: {_named(error)}") from None
        if response.status_code != 200:
            if response.status_code in UNWILLING and await self.is_silent():
                says = f"answers {response.status_code} to whatever is asked"
                raise Trouble("UNAVAILABLE", says, **_AWAY, is_free=True)
            wait = response.headers.get("retry-after")
            raise refusal(response.status_code, wait, answer, now=time.time())
        return answer

    async def is_silent(self) -> bool:
        """Tell whether the server is; many may ask at once, or one after the other."""
        known = self._silent_at
        if known is None or time.monotonic() > known + _STILL_SILENT_S:
            is_so = await is_silent(self._client(), self._models_url)
            self._silent_at = time.monotonic() if is_so else None
        return self._silent_at is not None

    def _client(self) -> "httpx.AsyncClient":
        import httpx

        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            for other in [known for known in list(self._clients) if known.is_closed()]:
                self._clients.pop(other, None)
            headers = {"content-type": "application/json"}
            if self._key:
                headers["authorization"] = f"Bearer {self._key}"
            # Callers bound how much they ask at once, and `_post` bounds the time.
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=100)
            client = httpx.AsyncClient(
                headers=headers,
                timeout=None,
                limits=limits,
                verify=_trusted(),
                transport=self._transport(limits),
            )
            self._clients[loop] = client
        return client

    def _transport(self, limits: "httpx.Limits") -> "httpx.AsyncBaseTransport":
        """Return what connects to judged addresses, or to the proxy of the environment."""
        import httpx

        from cbench_server.models.guarded_http import GuardedTransport, proxy_of

        proxy = proxy_of(self.endpoint) or None
        try:
            inner = httpx.AsyncHTTPTransport(verify=_trusted(), limits=limits, proxy=proxy)
        except (ImportError, ValueError) as error:
            message = f"cannot be asked by way of the proxy that the environment names: {error}"
            raise Trouble("BAD_REQUEST", message, is_free=True) from None
        return inner if proxy else GuardedTransport(self._dialling, inner)

    def _cleared(self, text: str) -> str:
        """Return a text without our key."""
        if not self._key or self._key not in text:
            return text
        # A short key, as for a local server, is also a part of words that are none.
        edge = r"(?<![\w-])", r"(?![\w-])"
        bounded = edge if len(self._key) < _SHORT_KEY else ("", "")
        return re.sub(re.escape(self._key).join(bounded), "[key]", text)

    def _wait(self, trouble: Trouble, attempt: int) -> float | None:
        """Return the seconds to wait before the next attempt; None to give up."""
        if not trouble.retryable or attempt > self._max_retries:
            return None
        return pause(attempt, self._retry_base_delay, self._jitter(), trouble.retry_after)

    def _failed(self, trouble: Trouble, attempts: int, url: str = "") -> ChatFailed:
        times = f", asked {attempts} times," if attempts > 1 else ""
        text = self._cleared(str(trouble))
        if len(text) > _MAX_MESSAGE:
            text = text[:_MAX_MESSAGE] + "…"
        failure = Failure(
            "system",
            trouble.reason,
            f"{url or self.endpoint}{times} {text}",
            attempts=attempts,
            retryable=trouble.retryable,
        )
        kind = ModelAway if trouble.is_away else ChatFailed
        failed = kind(failure, trouble.retry_after)
        failed.usage, failed.is_free = trouble.usage, trouble.is_free
        if isinstance(failed, ModelAway):
            failed.was_asked = trouble.was_asked
        return failed


def _gone(how: str) -> Trouble:
    trouble = Trouble("UNAVAILABLE", how, **_AWAY)
    trouble.was_asked = True
    return trouble


def load_http() -> None:
    """Load what calls need, which takes a while the first time."""
    _trusted()


@functools.cache
def _trusted() -> "ssl.SSLContext":
    """Return what tells whether to trust a server; made once, since it reads many certificates."""
    import httpx

    return httpx.create_ssl_context()


def pause(attempt: int, base: float, jitter: float, asked: float | None) -> float | None:
    """Return the seconds to wait after an attempt, counted from 1; None to give up.

    Exponential with full jitter (`jitter` is from 0 to 1), and never shorter
    than the server `asked` for, which may be too long to wait at all.
    """
    wait = min(base * 2.0 ** min(attempt - 1, 60), MAX_WAIT_S) * jitter
    if asked is None:
        return wait
    return max(wait, asked) if asked <= MAX_WAIT_S else None


async def _read(response: "httpx.Response") -> bytes:
    answer = bytearray()
    async for chunk in response.aiter_bytes():
        answer += chunk
        if len(answer) > MAX_ANSWER_BYTES:
            raise Trouble("BAD_RESPONSE", f"answered more than {MAX_ANSWER_BYTES >> 20} MB")
    return bytes(answer)


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".removesuffix(": ")
