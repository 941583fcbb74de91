"""Certificates of the daemon, read again for new connections when their files change."""

import logging
import os
import ssl
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import grpc

from cbench_server.errors import CbenchError

log = logging.getLogger(__name__)


class CannotListen(CbenchError):
    """The daemon cannot serve at that address."""

    reason = "CANNOT_LISTEN"


class Certificates:
    """A certificate, its key and the authority of clients, by the names of their files."""

    def __init__(self, cert: str, key: str, client_ca: str = "") -> None:
        self._paths = [Path(each) for each in (cert, key, client_ca) if each]
        self._cert, self._key, self._client_ca = cert, key, client_ca
        self._seen: list[Any] = []
        self._complaint = ""

    def credentials(self) -> grpc.ServerCredentials:
        """Return credentials that look at the files again for every connection."""
        try:
            first = self._read()
        except (OSError, ValueError) as error:
            raise CannotListen(str(error)) from error
        return grpc.dynamic_ssl_server_credentials(
            first,
            partial(self._renewed, self._read),
            require_client_authentication=bool(self._client_ca),
        )

    def context(self) -> ssl.SSLContext:
        """Return what another server than gRPC's takes; it does the same."""
        latest = first = self._context()

        def choose(connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
            nonlocal latest
            latest = self._renewed(self._context) or latest
            connection.context = latest

        # Called for clients that name no server, too.
        first.sni_callback = choose
        return first

    def _renewed(self, read: Callable[[], Any]) -> Any:
        """Return other certificates than before, or None; gRPC asks, in a thread of its own."""
        try:
            if self._signatures() == self._seen:
                return None
            renewed = read()
        except (OSError, ValueError) as error:
            # Once, and not for every connection.
            if str(error) != self._complaint:
                log.error("certificates are left as they were: %s", error)
            self._complaint = str(error)
            return None
        self._complaint = ""
        log.info("read certificates again", extra={"files": [str(each) for each in self._paths]})
        return renewed

    def _signatures(self) -> list[Any]:
        found = map(os.stat, self._paths)
        return [(each.st_mtime_ns, each.st_size, each.st_ino) for each in found]

    def _context(self) -> ssl.SSLContext:
        seen = self._signatures()
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self._cert, self._key)
        if self._client_ca:
            context.load_verify_locations(self._client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
        self._seen = seen
        return context

    def _read(self) -> Any:
        texts = {}
        try:
            seen = self._signatures()
            for path in self._paths:
                texts[str(path)] = path.read_bytes()
        except OSError as error:
            raise ValueError(f"cannot read {error.filename}: {error.strerror}.") from error
        try:
            # What gRPC would only find out at the first connection.
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self._cert, self._key)
        except (ssl.SSLError, OSError) as error:
            raise ValueError(
                f"{self._cert} and {self._key} are not a certificate and its key in PEM: {error}."
            ) from error
        self._seen = seen
        ca = texts.get(str(Path(self._client_ca))) if self._client_ca else None
        if ca is not None and b"-----BEGIN CERTIFICATE-----" not in ca:
            raise ValueError(f"{self._client_ca} holds no certificate in PEM.")
        pair = (texts[str(Path(self._key))], texts[str(Path(self._cert))])
        return grpc.ssl_server_certificate_configuration([pair], root_certificates=ca)
