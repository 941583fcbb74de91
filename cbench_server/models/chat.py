"""A client for models behind an OpenAI-compatible endpoint; proxies, readers and judges use it.

httpx is imported with the first client: not with this module, because it takes longer than
`cbench --help` may take to answer, and not with the first call, whose time is measured.
"""

import asyncio
import functools
import json
import os
import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from cbench_server.errors import CallFailed, InvalidInput
from cbench_server.models.chat_answer import MAX_WAIT_S, ChatReply, Trouble, parse_reply, refusal
from cbench_server.models.messages import Message
from cbench_server.results import Failure

if TYPE_CHECKING:
    import ssl

    import httpx

PROBE_SECONDS = 5.0
MAX_ANSWER_BYTES = 64 * 2**20
_MAX_MESSAGE = 400
_SHORT_KEY = 8


class ChatFailed(CallFailed, RuntimeError):
    """A model gave no answer; `failure` says why and whether asking again may help."""


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
        self.host = _checked_host(base_url)
        self.endpoint = endpoint_of(base_url)
        self.model = model
        self.extra_body = dict(extra_body or {})
        self._key = _checked_key(api_key)
        self._timeout = timeout
        self._max_retries = max_retries
        self._retry_base_delay = retry_base_delay
        self._jitter = jitter
        self._clients: dict[asyncio.AbstractEventLoop, httpx.AsyncClient] = {}

    async def complete(
        self, messages: Sequence[Message], settings: Mapping[str, Any] | None = None
    ) -> ChatReply:
        """Return the model's answer; raise ChatFailed once nothing is left to try.

        `settings` are keys of this request alone; those of `extra_body` override them, and
        with None leave them out.
        """
        body = self._encode(messages, settings or {})
        attempt = 0
        while True:
            attempt += 1
            try:
                return parse_reply(await self._post(body))
            except Trouble as trouble:
                wait = self._wait(trouble, attempt)
                if wait is None:
                    # Not chained: the message says it all, and has been cleared of the key.
                    raise self._failed(trouble, attempt) from None
            await asyncio.sleep(wait)

    async def probe(self) -> None:
        """Make sure that a server is there which takes our key; raise ChatFailed if not.

        Asks for the list of models, which costs nothing. A server that has none, or
        is too busy to say, is there all the same.
        """
        import httpx

        url = self.endpoint.removesuffix("/chat/completions") + "/models"
        timeout = httpx.Timeout(PROBE_SECONDS)
        try:
            async with self._client().stream("GET", url, timeout=timeout) as response:
                if response.status_code != 401:
                    return
                trouble = refusal(401, None, await _read(response), now=time.time())
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            trouble = Trouble("UNAVAILABLE", f"cannot be reached: {_cause(error)}")
        except (httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
            trouble = Trouble("BAD_REQUEST", f"cannot be asked: {_named(error)}")
        except httpx.HTTPError:
            return
        raise self._failed(trouble, 1, url) from None

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
            trouble = Trouble("BAD_REQUEST", f"cannot be sent the request as JSON: {error}")
            raise self._failed(trouble, 0) from None

    async def _post(self, body: bytes) -> bytes:
        import httpx

        try:
            async with (
                asyncio.timeout(self._timeout),
                self._client().stream("POST", self.endpoint, content=body) as response,
            ):
                answer = await _read(response)
        except TimeoutError:
            raise Trouble(
                "DEADLINE_EXCEEDED", f"did not answer within {self._timeout:g}s", retryable=True
            ) from None
        except (httpx.LocalProtocolError, httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
            raise Trouble("BAD_REQUEST", f"cannot be asked: {_named(error)}") from None
        except httpx.TransportError as error:
            raise Trouble(
                "UNAVAILABLE", f"broke off the connection: {_named(error)}", retryable=True
            ) from None
        except httpx.HTTPError as error:
            raise Trouble("BAD_RESPONSE", f"cannot be read: {_named(error)}") from None
        if response.status_code != 200:
            wait = response.headers.get("retry-after")
            raise refusal(response.status_code, wait, answer, now=time.time())
        return answer

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
                headers=headers, timeout=None, limits=limits, verify=_trusted()
            )
            self._clients[loop] = client
        return client

    def _wait(self, trouble: Trouble, attempt: int) -> float | None:
        """Return the seconds to wait before the next attempt; None to give up."""
        if not trouble.retryable or attempt > self._max_retries:
            return None
        return pause(attempt, self._retry_base_delay, self._jitter(), trouble.retry_after)

    def _failed(self, trouble: Trouble, attempts: int, url: str = "") -> ChatFailed:
        times = f", asked {attempts} times," if attempts > 1 else ""
        text = str(trouble)
        if self._key:
            # A short key, as for a local server, is also a part of words that are none.
            edge = r"(?<![\w-])", r"(?![\w-])"
            bounded = edge if len(self._key) < _SHORT_KEY else ("", "")
            text = re.sub(re.escape(self._key).join(bounded), "[key]", text)
        if len(text) > _MAX_MESSAGE:
            text = text[:_MAX_MESSAGE] + "…"
        failure = Failure(
            "system",
            trouble.reason,
            f"{url or self.endpoint}{times} {text}",
            attempts=attempts,
            retryable=trouble.retryable,
        )
        return ChatFailed(failure, trouble.retry_after)


def load_http() -> None:
    """Load what calls need, which takes a while the first time."""
    _trusted()


@functools.cache
def _trusted() -> "ssl.SSLContext":
    """Return what tells whether to trust a server; made once, since it reads many certificates."""
    import httpx

    return httpx.create_ssl_context()


def endpoint_of(base_url: str) -> str:
    """Return where chats are asked for, whether or not the URL goes as far as `/v1` or beyond."""
    root = base_url.rstrip("/")
    if root.endswith("/chat/completions"):
        return root
    return f"{root.removesuffix('/v1')}/v1/chat/completions"


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


def _cause(error: BaseException) -> str:
    """Return the innermost reason, which says more than that all attempts failed."""
    while inner := error.__cause__ or error.__context__:
        error = inner
    if isinstance(error, OSError) and error.errno:
        # asyncio puts its own words in the place of the system's.
        return os.strerror(error.errno) if error.errno > 0 else str(error.strerror)
    return str(error) or type(error).__name__


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".removesuffix(": ")


def _checked_host(base_url: str) -> str:
    # The URL is not quoted where it may hold a password or a key.
    parts = urlsplit(base_url)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise InvalidInput(
            "a base URL has no user, password, query or fragment, since URLs are shown and "
            "stored; pass the key as api_key"
        )
    try:
        is_complete = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_complete = False
    if not is_complete:
        raise InvalidInput(f'"{base_url}" is not a base URL; write it like https://api.openai.com')
    return parts.netloc


def _checked_key(api_key: str | None) -> str:
    key = (api_key or "").strip()
    if not all("!" <= character <= "~" for character in key):
        raise InvalidInput("the API key holds characters that cannot stand in an HTTP header")
    return key
