"""Clients that equal judges share, since a daemon makes a judge for every pair it scores."""

import asyncio
import json
import math
import threading
from collections import OrderedDict
from collections.abc import Mapping

from cbench_server.models.chat import ChatClient
from cbench_server.models.tracing import UNTRACED

_KEPT = 32
_Key = tuple[str, str, str | None, float, str]


class _SharedClient(ChatClient):
    """A client that closes its connections when it is retired, and after each use from then on."""

    _busy = 0
    _is_retired = False

    async def _post(
        self,
        body: bytes,
        trace: Mapping[str, str] = UNTRACED,
        url: str = "",
        timeout: float = math.inf,
    ) -> bytes:
        self._busy += 1
        try:
            return await super()._post(body, trace, url, timeout)
        finally:
            self._busy -= 1
            if self._is_retired and not self._busy:
                await self.close_connections()

    def retire(self) -> None:
        """Close what is open; judges that hold the client can still use it."""
        self._is_retired = True
        for loop in list(self._clients) if not self._busy else ():
            if loop.is_running():
                asyncio.run_coroutine_threadsafe(self.close_connections(), loop)


_clients: OrderedDict[_Key, _SharedClient] = OrderedDict()
_lock = threading.Lock()


def shared_client(
    base_url: str, model: str, key: str | None, timeout: float, body: str
) -> ChatClient:
    """Return the client of equal judges; the one unused for longest is closed for a new one.

    It does not retry by itself: every attempt has to wait for its turn.
    """
    known = (base_url, model, key, timeout, body)
    with _lock:
        client = _clients.get(known)
        if client is None:
            client = _clients[known] = _SharedClient(
                base_url,
                model,
                api_key=key,
                timeout=timeout,
                max_retries=0,
                extra_body=json.loads(body),
            )
        _clients.move_to_end(known)
        evicted = [_clients.popitem(last=False)[1] for _ in range(len(_clients) - _KEPT)]
    for each in evicted:
        each.retire()
    return client
