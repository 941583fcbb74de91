"""Errors at this end of the wire.

ClientError
├── Unencodable      a value that cannot cross the wire without loss
├── Unreachable      nothing answers, or not in our protocol
├── RemoteFailure    the other side says why one example got no result
├── Refused          the other side declined the request; `reason` says why
├── NotServable      an object lacks what it needs to be served
├── CannotServe      the address cannot be served on
├── InvalidSpec      a dict does not describe a run
└── InsecureToken    a token would travel in the clear
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cbench_client.messages.error_details import FieldViolation

ADVICE = {
    "USE_TLS": "Pass tls=True, or tls=Tls(ca_pem=...) for a certificate of your own.",
    "DROP_TLS": "Drop tls, or check the port.",
    "TRUST_AUTHORITY": (
        "Pass its authority as Tls(ca_pem=...), or the name in it as Tls(server_name=...)."
    ),
    "PRESENT_CERTIFICATE": (
        "If it asks for a client certificate, pass a valid one as Tls(cert_pem=..., key_pem=...)."
    ),
    "PRESENT_TOKEN": "Pass token=...",
}
"""The way out of an error, by the code in its `advice`, in arguments of this library."""


class ClientError(Exception):
    """What went wrong, in a sentence for a person; `reason` is for programs.

    Where an argument of this library is the way out, `advice` is a key of
    `ADVICE`, and `problem` is the message without that sentence, so that a
    program with flags or settings can give the advice in its own words.
    """

    reason = "INTERNAL"

    def __init__(self, problem: str = "", *, advice: str = "") -> None:
        super().__init__(f"{problem} {ADVICE[advice]}" if advice else problem)
        self.problem = problem
        self.advice = advice


class Unencodable(ClientError, ValueError):
    """A value cannot cross the wire without loss."""

    reason = "UNENCODABLE_VALUE"


class Unreachable(ClientError, ConnectionError):
    """Nothing answers at that address, or what answers is not what was expected."""

    reason = "UNREACHABLE"


_A_YEAR_S = 365 * 86_400.0


class RemoteFailure(ClientError):
    """The other side could not produce a result for one call.

    `retry_delay` is in seconds. What is no length of time (nan, or below 0) counts as none, and
    more than a year as a year, so that no wrong delay costs the failure its words.
    """

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
        self.retry_delay = (
            min(retry_delay, _A_YEAR_S) if retry_delay is not None and retry_delay >= 0 else None
        )
        self.stack_trace = stack_trace
        self.attempts = attempts


class Refused(ClientError):
    """The other side declined a request; `code` is the name of the gRPC status.

    `violations` are the fields of the request that are to blame, each with its
    path, such as `spec.systems[1].options["ratio"]`, and `field` is the path of
    the first; empty where it does not say. `metadata` is what else was told.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str,
        reason: str = "",
        violations: "Sequence[FieldViolation]" = (),
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        problem, advice = split_advice(message)
        super().__init__(problem, advice=advice)
        self.code = code
        self.reason = reason or code
        self.violations = tuple(violations)
        self.field = self.violations[0].field if violations else ""
        self.metadata = dict(metadata or {})


class NotServable(ClientError, TypeError):
    """An object lacks what it needs to be served."""

    reason = "NOT_SERVABLE"


class CannotServe(ClientError):
    """The address cannot be served on."""

    reason = "CANNOT_SERVE"


class InvalidSpec(ClientError, ValueError):
    """A dict does not describe the message it should."""

    reason = "INVALID_SPEC"


class InsecureToken(ClientError, ValueError):
    """A token would travel in the clear."""

    reason = "INSECURE_TOKEN"


def split_advice(message: str) -> tuple[str, str]:
    """Tell a problem from its advice: a daemon passes on what this library told it."""
    for code, sentence in ADVICE.items():
        if message.endswith(f" {sentence}"):
            return message.removesuffix(f" {sentence}"), code
    return message, ""
