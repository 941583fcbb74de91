"""What can go wrong at this end of the wire.

ClientError
├── Unencodable      a value that cannot cross the wire without loss
├── Unreachable      nobody answers, or not in our protocol
├── RemoteFailure    the other side says why one example got no result
└── Refused          the daemon declined the request; `reason` says why
"""


class ClientError(Exception):
    """What went wrong, in a sentence for a person; `reason` is for programs."""

    reason = "INTERNAL"


class Unencodable(ClientError, ValueError):
    """A value cannot cross the wire without loss."""

    reason = "UNENCODABLE_VALUE"


class Unreachable(ClientError, ConnectionError):
    """Nobody answers at that address, or what answers is not what was expected."""

    reason = "UNREACHABLE"


class RemoteFailure(ClientError):
    """The other side could not produce a result for one call."""

    def __init__(
        self,
        message: str,
        *,
        origin: str = "system",
        reason: str = "INTERNAL",
        retryable: bool = False,
        retry_delay: float | None = None,
        stack_trace: str = "",
        attempts: int = 0,
    ) -> None:
        super().__init__(message)
        self.origin = origin
        self.reason = reason
        self.retryable = retryable
        self.retry_delay = retry_delay
        self.stack_trace = stack_trace
        self.attempts = attempts


class Refused(ClientError):
    """The daemon declined a request."""

    def __init__(self, message: str, *, code: str, reason: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason or code
