"""What libraries raise when data elsewhere cannot be read, and what of it will pass."""

import errno
import ssl

import httpx
import pytest

from cbench_server.datasets.away import is_away


def answered(status: int) -> Exception:
    request = httpx.Request("GET", "http://there")
    return httpx.HTTPStatusError(
        "so", request=request, response=httpx.Response(status, request=request)
    )


class ClientError(Exception):
    """As botocore's, which s3fs turns into an OSError."""

    def __init__(self, status: int) -> None:
        self.response = {"ResponseMetadata": {"HTTPStatusCode": status}}


def led_to(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ConnectionRefusedError(), True),
        (TimeoutError(), True),
        (OSError(errno.EHOSTUNREACH, "no route"), True),
        (httpx.ReadError("broken off"), True),
        (answered(503), True),
        (answered(429), True),
        (answered(404), False),
        (answered(403), False),
        (led_to(FileNotFoundError("x"), ConnectionResetError()), True),
        (led_to(FileNotFoundError("x"), answered(404)), False),
        (led_to(OSError(errno.EBUSY, "slow down"), ClientError(503)), True),
        (led_to(PermissionError("no"), ClientError(403)), False),
        (led_to(ConnectionError(), ssl.SSLCertVerificationError()), False),
        (ValueError("not what was expected"), False),
        (FileNotFoundError("none"), False),
    ],
    ids=repr,
)
def test_what_may_pass_is_told_from_what_is_wrong(error: Exception, expected: bool) -> None:
    assert is_away(error) is expected
