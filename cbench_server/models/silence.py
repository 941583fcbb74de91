"""Silence: whether a server of models that let a request's time pass answers anything at all.

One that works on a request answers others beside it, and the request was too slow. One that is
stopped or cut off answers nothing, and is waited for as if it had died. So is one of which a
gateway says that it is not there, or that takes no request whatever.
"""

from typing import TYPE_CHECKING

from cbench_server.clocks.standstill import time_awake

if TYPE_CHECKING:
    import httpx

# As long as a system gets to take a new connection.
_ANSWERS_WITHIN_S = 10.0

UNWILLING = frozenset({429, 502, 503, 504, 529})
"""What is answered for a server that is not there, or by one that is too busy."""


async def is_silent(client: "httpx.AsyncClient", url: str) -> bool:
    """Ask for something that costs nothing; any other answer will do, a refusal as well."""
    import httpx

    try:
        async with time_awake(_ANSWERS_WITHIN_S), client.stream("GET", url) as said:
            return said.status_code in UNWILLING
    except (TimeoutError, httpx.ConnectError, httpx.ConnectTimeout):
        return True
    except httpx.HTTPError:
        return False
