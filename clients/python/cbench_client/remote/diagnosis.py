"""Diagnoses of unreachable targets: one sentence with the target, the cause and what to do.

gRPC reports most causes as UNAVAILABLE, or as a deadline. So after a failure
the port is asked once more, over a bare socket, what it speaks.
"""

import asyncio
import re
import socket
import ssl

import grpc

from cbench_client.errors import ADVICE, Refused, Unreachable
from cbench_client.remote.channel import Address, Tls, address_of, tls_of

_CONNECT_TIMEOUT = 2.0
_ANSWER_TIMEOUT = 1.0
# What an HTTP/2 client says first, with empty settings; the answer tells who listens.
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
_SETTINGS = 4


def explain(
    target: str,
    service: str,
    error: grpc.RpcError,
    *,
    tls: Tls | bool | None = None,
    has_token: bool = False,
    timeout: float | None = None,
) -> Unreachable | Refused:
    """Say why calling `service` at `target` failed. Takes up to a few seconds."""
    code, details = error.code(), short(error.details())
    if code is grpc.StatusCode.UNAUTHENTICATED:
        told = f"{target} refused the token it was given. Check the token."
        if not has_token:
            told = f"{target} wants a token and none was given. {ADVICE['PRESENT_TOKEN']}"
        return Refused(told, code="UNAUTHENTICATED")
    if code is grpc.StatusCode.PERMISSION_DENIED:
        return Refused(f"{target} refused: {details}.", code="PERMISSION_DENIED")
    if code is grpc.StatusCode.UNIMPLEMENTED:
        return Unreachable(
            f"a gRPC server answers at {target}, but it does not serve {service}. "
            "Check the address, or add the service to that process."
        )
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        within = "in time" if timeout is None else f"within {timeout:g}s"
        otherwise = f"{target} did not answer {within}. Is the process busy or stopped?"
    elif code is grpc.StatusCode.UNAVAILABLE:
        otherwise = f"{target} is not available: {details}. Is it starting or shutting down?"
    else:
        name = code.name if code is not None else "UNKNOWN"
        return Unreachable(
            f"{target} did not answer {service} properly: {name}: {details}. "
            "Is that the right address?"
        )
    if "resolv" in details or "Domain name not found" in details:
        return _unknown_host(target)
    return _ask_port(target, tls_of(tls)) or Unreachable(otherwise)


async def explain_async(
    target: str,
    service: str,
    error: grpc.RpcError,
    *,
    tls: Tls | bool | None = None,
    has_token: bool = False,
    timeout: float | None = None,
) -> Unreachable | Refused:
    """Do as `explain`, without holding up the loop."""
    return await asyncio.to_thread(
        explain, target, service, error, tls=tls, has_token=has_token, timeout=timeout
    )


def short(details: str | None) -> str:
    """Take the cause out of gRPC's words: one line, no addresses repeated."""
    first = (details or "no reason given").strip().splitlines()[0]
    return re.sub(r"^.*last error: (\w+: )?", "", first)[:200].rstrip(". ")


def _unknown_host(target: str) -> Unreachable:
    host = address_of(target).host
    return Unreachable(f'there is no host "{host}" (from {target}). Check the name.')


def _ask_port(target: str, tls: Tls | None) -> Unreachable | None:
    """Find out what listens at `target`; None if it looks like gRPC."""
    address = address_of(target)
    if address.path is None and address.port is None:
        return Unreachable(f"{target} names no port. Write it as host:port.")
    try:
        with _connect(address) as connection:
            if tls is not None:
                return _ask_tls(target, connection, tls, address.host)
            answer = _answer(connection)
    except socket.gaierror:
        return _unknown_host(target)
    except (ConnectionRefusedError, FileNotFoundError):
        return Unreachable(
            f"nothing listens at {target}. Is it running? Start it, or check the address."
        )
    except TimeoutError:
        return Unreachable(
            f"{target} does not accept connections: no answer within {_CONNECT_TIMEOUT:g}s. "
            "Check the address and any firewall between."
        )
    except OSError as error:
        cause = error.strerror or error
        return Unreachable(f"{target} cannot be reached: {cause}. Check the address.")
    if answer[3:4] == bytes([_SETTINGS]):
        return None
    if _speaks_tls(address):
        return Unreachable(f"{target} speaks TLS and this connection does not.", advice="USE_TLS")
    if _speaks_http(address):
        return Unreachable(f"{target} is an HTTP/1 server, not a gRPC one. Is that the right port?")
    if answer:
        return Unreachable(
            f"something listens at {target}, but it does not speak gRPC. Is it the right port?"
        )
    return Unreachable(
        f"something listens at {target}, but says nothing a gRPC server would. "
        "Is it the right port, and is the process alive?"
    )


def _connect(address: Address) -> socket.socket:
    if address.path is None:
        connection = socket.create_connection((address.host, address.port), _CONNECT_TIMEOUT)
    else:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.settimeout(_CONNECT_TIMEOUT)
            connection.connect(address.path)
        except BaseException:
            connection.close()
            raise
    connection.settimeout(_ANSWER_TIMEOUT)
    return connection


def _answer(connection: socket.socket, greeting: bytes = _PREFACE) -> bytes:
    try:
        connection.sendall(greeting)
        return connection.recv(64)
    except OSError:
        return b""


def _speaks_http(address: Address) -> bool:
    try:
        with _connect(address) as connection:
            answer = _answer(connection, b"GET / HTTP/1.0\r\n\r\n")
    except OSError:
        return False
    return answer.startswith(b"HTTP/")


def _speaks_tls(address: Address) -> bool:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    try:
        with _connect(address) as bare, context.wrap_socket(bare):
            return True
    except ssl.SSLError as error:
        return error.reason is not None and "ALERT" in error.reason
    except OSError:
        return False


def _wants_certificate(target: str, answer: str) -> Unreachable:
    return Unreachable(
        f"{target} refused the TLS handshake ({answer}).", advice="PRESENT_CERTIFICATE"
    )


def _ask_tls(target: str, connection: socket.socket, tls: Tls, host: str) -> Unreachable | None:
    try:
        context = ssl.create_default_context()
        if tls.ca_pem is not None:
            context = ssl.create_default_context(cadata=tls.ca_pem.decode())
    except (ssl.SSLError, ValueError):
        return Unreachable(
            f"the ca_pem given for {target} holds no certificate. Pass the PEM text itself."
        )
    context.set_alpn_protocols(["h2"])
    try:
        with context.wrap_socket(connection, server_hostname=tls.server_name or host) as secure:
            secure.sendall(_PREFACE)
            if secure.recv(64):
                return None
            return _wants_certificate(target, "hung up")
    except ssl.SSLCertVerificationError as error:
        return Unreachable(
            f"the certificate of {target} is not accepted: {error.verify_message}.",
            advice="TRUST_AUTHORITY",
        )
    except ssl.SSLError as error:
        if "ALERT" in (error.reason or ""):
            return _wants_certificate(target, str(error.reason))
        return Unreachable(
            f"{target} does not speak TLS and this connection does.", advice="DROP_TLS"
        )
    except OSError:
        return Unreachable(f"{target} does not finish a TLS handshake.", advice="DROP_TLS")
