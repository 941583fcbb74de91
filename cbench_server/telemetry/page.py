"""The page that Prometheus scrapes, and the two that supervisors ask: alive, and ready."""

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Callable, Collection, Mapping
from http import HTTPStatus

log = logging.getLogger(__name__)

_MAX_HEAD = 16 * 1024
_PATIENCE_S = 5.0
_MOST = 16
_TEXT = "text/plain; version=0.0.4; charset=utf-8"

Answer = tuple[HTTPStatus, bytes]


class Page:
    """A small web server with three paths; anything else it refuses.

    Args:
        paths: What answers each path.
        open_paths: Those of them that everybody may read; supervisors have no tokens.
        may: Tells by the value of `authorization` whether a caller may read the others.
    """

    def __init__(
        self,
        paths: Mapping[str, Callable[[], Answer]],
        open_paths: Collection[str],
        may: Callable[[str], bool],
    ) -> None:
        self._paths = paths
        self._open_paths = open_paths
        self._may = may
        self._here = 0
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> str:
        """Listen, and return where."""
        self._server = await asyncio.start_server(self._serve, host, port, ssl=tls, limit=_MAX_HEAD)
        bound = self._server.sockets[0].getsockname()
        return f"{bound[0]}:{bound[1]}"

    async def stop(self) -> None:
        """Listen no more."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._here += 1
        try:
            async with asyncio.timeout(_PATIENCE_S):
                status, body = HTTPStatus.SERVICE_UNAVAILABLE, b"too many readers\n"
                if self._here <= _MOST:
                    head = await reader.readuntil(b"\r\n\r\n")
                    status, body = self._answer(head.decode("latin-1"))
                writer.write(_head(status, len(body)) + body)
                await writer.drain()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            return
        finally:
            self._here -= 1
            with contextlib.suppress(OSError):
                writer.close()

    def _answer(self, head: str) -> Answer:
        first, *lines = head.split("\r\n")
        method, _, rest = first.partition(" ")
        path = rest.partition(" ")[0].partition("?")[0]
        if method != "GET":
            return HTTPStatus.METHOD_NOT_ALLOWED, b"GET only\n"
        if path not in self._paths:
            known = ", ".join(self._paths)
            return HTTPStatus.NOT_FOUND, f"there are: {known}\n".encode()
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines)
        }
        if path not in self._open_paths and not self._may(headers.get("authorization", "")):
            return HTTPStatus.UNAUTHORIZED, b"a bearer token of a reader is needed\n"
        return self._paths[path]()


def _head(status: HTTPStatus, size: int) -> bytes:
    lines = [
        f"HTTP/1.1 {status.value} {status.phrase}",
        f"content-type: {_TEXT}",
        f"content-length: {size}",
        "connection: close",
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()
