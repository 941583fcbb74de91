"""A web server that answers a POST of the JSON of a bridge, or of a list of it."""

import asyncio
import contextlib
import itertools
import socket
import sys
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx

from cbench_client import RemoteFailure
from cbench_server.bridges.exchange import (
    MAX_ANSWER_BYTES,
    Message,
    checked,
    decoded,
    encoded,
    id_of,
    shown,
)

_GATHER_S = 0.005
_PROBE_S = 5.0
# Overloaded, restarting, or a proxy before a server that is: the same request may do later.
_RETRYABLE = (408, 425, 429, 500, 502, 503, 504)

Waiting = list[tuple[int, bytes, "asyncio.Future[Message]"]]
"""Calls that are sent together: the id, the object, and who waits for the answer."""


class Endpoint:
    """A URL that requests are sent to.

    Args:
        timeout: Seconds until an answer is given up; None leaves that to who asks.
        batch: Requests sent together, as a list that is answered by a list.
        headers: Sent with each.
        gone: Called when nobody listens at the URL any more.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: float | None = None,
        batch: int = 1,
        headers: Mapping[str, str] | None = None,
        gone: Callable[[str], None] | None = None,
    ) -> None:
        self._url = url
        self._timeout = timeout
        self._batch = batch
        self._headers = {**(headers or {}), "content-type": "application/json"}
        self._gone = gone
        self._ids = itertools.count(1)
        self._client: httpx.AsyncClient | None = None
        self._gathered: Waiting = []
        self._sending: set[asyncio.Task[None]] = set()

    async def ask(self, request: Message) -> Message:
        """See Exchange."""
        place = next(self._ids)
        # One that cannot be sent fails here, and spoils no others.
        line = encoded({"id": place, **request})
        if self._batch == 1:
            return checked(await self._post(line), self._url)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Message] = loop.create_future()
        self._gathered.append((place, line, future))
        if len(self._gathered) >= self._batch:
            self._send()
        elif len(self._gathered) == 1:
            loop.call_later(_GATHER_S, self._send)
        return checked(await future, self._url)

    def close(self) -> None:
        """See Exchange."""
        for task in self._sending:
            task.cancel()

    def _send(self) -> None:
        together, self._gathered = self._gathered[: self._batch], self._gathered[self._batch :]
        together = [each for each in together if not each[2].done()]
        if together:
            task = asyncio.ensure_future(self._send_together(together))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _send_together(self, together: Waiting) -> None:
        try:
            answers = await self._post(b"[" + b",".join(line for _, line, _ in together) + b"]")
            if not isinstance(answers, list):
                raise RemoteFailure(
                    f"{self._url} was sent a list of {len(together)} and answered "
                    f"{shown(repr(answers).encode())}, which is not a list",
                    reason="BAD_RETURN",
                )
        except RemoteFailure as error:
            for _, _, future in together:
                if not future.done():
                    future.set_exception(error)
            return
        found = {id_of(answer): answer for answer in answers}
        for place, _, future in together:
            if future.done():
                continue
            if place in found:
                future.set_result(found[place])
            else:
                future.set_exception(
                    RemoteFailure(
                        f"{self._url} answered a list without the id {place}; an answer "
                        "has the id of its request",
                        reason="BAD_RETURN",
                    )
                )

    async def _post(self, body: bytes) -> Any:
        if self._client is None:
            self._client = httpx.AsyncClient(
                timeout=self._timeout,
                headers=self._headers,
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=256),
                trust_env=False,
            )
        try:
            async with self._client.stream("POST", self._url, content=body) as reply:
                _acknowledge(reply)
                text = await _read(reply, self._url)
        except httpx.TimeoutException as error:
            raise RemoteFailure(
                f"{self._url} did not answer within {self._timeout:g}s", reason="DEADLINE_EXCEEDED"
            ) from error
        except httpx.HTTPError as error:
            why = f"{self._url} cannot be asked: {error or type(error).__name__}"
            if self._gone is not None and not await asyncio.to_thread(listens, self._url):
                self._gone(why)
            raise RemoteFailure(why, reason="UNAVAILABLE", retryable=True) from error
        if reply.status_code >= 300 or reply.status_code < 200:
            raise RemoteFailure(
                f"{self._url} answered {reply.status_code}: {_said(reply, text)}",
                reason=f"HTTP_{reply.status_code}",
                retryable=reply.status_code in _RETRYABLE,
                retry_delay=_delay(reply),
            )
        return decoded(text, self._url)


async def _read(reply: httpx.Response, url: str) -> bytes:
    parts, size = [], 0
    async for part in reply.aiter_bytes():
        size += len(part)
        if size > MAX_ANSWER_BYTES:
            raise RemoteFailure(
                f"{url} answered more than {MAX_ANSWER_BYTES} bytes", reason="BAD_RETURN"
            )
        parts.append(part)
    return b"".join(parts)


def _acknowledge(reply: httpx.Response) -> None:
    """Have what has come acknowledged at once.

    Servers that write head and body apart, as Python's own does, hold the body until the head is
    acknowledged, and Linux would wait 40 ms with that: more than most systems take.
    """
    stream = reply.extensions.get("network_stream")
    connection = stream.get_extra_info("socket") if stream is not None else None
    if sys.platform == "linux" and connection is not None:
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


def _said(reply: httpx.Response, text: bytes) -> str:
    if target := reply.headers.get("location"):
        return f"it is at {shown(target.encode())} now. Give that address"
    return shown(text)


def _delay(reply: httpx.Response) -> float | None:
    with contextlib.suppress(ValueError):
        return max(0.0, float(reply.headers.get("retry-after", "")))
    return None


def listens(url: str) -> bool:
    """Tell whether anybody accepts connections at the address of a URL."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        with socket.create_connection((parts.hostname or "", port), _PROBE_S):
            return True
    except OSError:
        return False
