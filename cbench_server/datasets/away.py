"""Away: whether data elsewhere could not be read because nobody answers just now.

The libraries below raise a hundred classes for that, some of them with another around it. What a
server says on purpose (404, 403, a certificate of somebody else) is no sign of its absence.
"""

import errno
import socket
import ssl
from collections.abc import Iterator

# Too many requests, or a server that is starting, stopping or overloaded.
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
# Of aiohttp, httpx, requests, botocore, urllib3 and http.client, which may not be installed.
_LOST = frozenset(
    {
        "ChunkedEncodingError",
        "ClientConnectionError",
        "ClientPayloadError",
        "ConnectionError",
        "HTTPClientError",
        "IncompleteRead",
        "IncompleteReadError",
        "NetworkError",
        "ProtocolError",
        "RemoteProtocolError",
        "ResponseStreamingError",
        "Timeout",
        "TimeoutException",
    }
)
# They are set, and stay.
_MEANT = frozenset({"OfflineModeIsEnabled"})
_UNREACHED = frozenset(
    {errno.EBUSY, errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTDOWN, errno.EHOSTUNREACH}
)


def is_away(error: BaseException) -> bool:
    """Tell whether an error, or what led to it, says that nobody was there or willing."""
    found = False
    for each in _chain(error):
        names = {kind.__name__ for kind in type(each).__mro__}
        if isinstance(each, ssl.SSLCertVerificationError) or names & _MEANT:
            return False
        status = _status_of(each)
        if status is not None:
            return status in _PASSING
        is_lost = isinstance(each, ConnectionError | TimeoutError | socket.gaierror)
        is_unreached = isinstance(each, OSError) and each.errno in _UNREACHED
        found |= is_lost or is_unreached or bool(names & _LOST)
    return found


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _status_of(error: BaseException) -> int | None:
    """Return the HTTP status that a server answered with, in the way of several libraries."""
    said = vars(error)
    response = said.get("response")
    if isinstance(response, dict):
        found = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    elif response is not None and "status_code" in dir(response):
        found = response.status_code
    else:
        found = said.get("status")
    return found if isinstance(found, int) else None
