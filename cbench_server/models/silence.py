"""Silence: whether a server of models that let a request's time pass answers anything at all.

One that works on a request answers others beside it, and the request was too slow. One that is
stopped or cut off answers nothing, and is waited for as if it had died.
"""

from typing import TYPE_CHECKING

from cbench_server.clocks.standstill import time_awake

if TYPE_CHECKING:
    import httpx

# As long as a system gets to take a new connection.
_ANSWERS_WITHIN_S = 10.0


async def is_silent(client: "httpx.AsyncClient", url: str) -> bool:
    """Ask for something that costs nothing; any answer will do, a refusal as well."""
    import httpx

    try:
        async with time_awake(_ANSWERS_WITHIN_S), client.stream("GET", url):
            return False
    except (TimeoutError, httpx.ConnectError, httpx.ConnectTimeout):
        return True
    except httpx.HTTPError:
        return False
