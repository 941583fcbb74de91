"""A transport of HTTP that connects to the very address which was judged."""

import time
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

from cbench_server.models.dialling import Dialling

_FRESH_S = 60.0


class GuardedTransport(httpx.AsyncBaseTransport):
    """Looks names up itself, judges every address, and has no other dialled.

    The server still sees the name, in its header and in TLS.
    """

    def __init__(self, dialling: Dialling, inner: httpx.AsyncHTTPTransport) -> None:
        self._dialling = dialling
        self._inner = inner
        self._known: dict[str, tuple[float, list[str]]] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request to the first judged address of its host that takes it."""
        url, host = request.url, request.url.host
        addresses = await self._addresses(host)
        for address in addresses:
            request.url = url.copy_with(host=address)
            request.extensions = {**request.extensions, "sni_hostname": host}
            try:
                response = await self._inner.handle_async_request(request)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                if address == addresses[-1]:
                    self._known.pop(host, None)
                    raise
            else:
                # The one that answers comes first from now on.
                addresses.remove(address)
                addresses.insert(0, address)
                return response
            finally:
                request.url = url
        raise httpx.ConnectError(f"{host} has no address")

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()

    async def _addresses(self, host: str) -> list[str]:
        known = self._known.get(host)
        if known is None or time.monotonic() > known[0]:
            try:
                found = await self._dialling.addresses(host)
            except OSError as error:
                raise httpx.ConnectError(str(error)) from error
            known = self._known[host] = (time.monotonic() + _FRESH_S, found)
        return known[1]


def proxy_of(url: str) -> str:
    """Return the proxy of the operator's choice, which looks up names itself; empty for none.

    The HTTP library would read NO_PROXY otherwise than this, and dial what it means unjudged.
    """
    parts = urlsplit(url)
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all") or ""
    # NO_PROXY may name a port, and has IPv6 addresses without brackets.
    if not proxy or proxy_bypass(parts.hostname or "") or proxy_bypass(parts.netloc):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"
