"""Secrets by name: a spec names one, the daemon's configuration says who may get it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from cbench_server.errors import InvalidSpec


@dataclass(frozen=True)
class Credential:
    """A secret in an environment variable, and the only addresses it may be sent to."""

    env: str
    prefix: str
    """A URL prefix or gRPC target."""


@dataclass(frozen=True)
class Credentials:
    """The credentials of this daemon."""

    known: Mapping[str, Credential] = field(default_factory=dict)
    default_env: str = ""
    """The variable used where a spec names no credential; only for a run in the user's own
    process, where the one who asks also pays."""

    def secret(self, name: str, address: str) -> str | None:
        """Return the secret to send to `address`, None if none is asked for."""
        if not name:
            return self._own(address)
        credential = self.known.get(name)
        if credential is None:
            known = ", ".join(sorted(self.known)) or "none"
            raise InvalidSpec(
                f'no credential "{name}" in the daemon\'s configuration. Known: {known}.',
                field="credential",
            )
        if not _is_under(address, credential.prefix):
            raise InvalidSpec(
                f'credential "{name}" may be sent to {credential.prefix} only, not to {address}.',
                field="credential",
            )
        secret = os.environ.get(credential.env)
        if not secret:
            raise InvalidSpec(
                f'credential "{name}" is the environment variable {credential.env} of the daemon, '
                "which is not set there.",
                field="credential",
            )
        return secret

    def _own(self, address: str) -> str | None:
        """Return the user's own key, which does not travel unencrypted over a network."""
        key = os.environ.get(self.default_env) if self.default_env else None
        if key and _is_in_the_clear(address):
            raise InvalidSpec(
                f"{self.default_env} would travel unencrypted to {address}. Use https, or say that "
                f"it needs no key: {self.default_env}= cbench ..."
            )
        return key


def _is_in_the_clear(address: str) -> bool:
    # Imported here, so that reading the settings does not wait for gRPC.
    from cbench_client.remote.channel import is_loopback

    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
        named = f"[{host}]:1" if ":" in host else f"{host}:1"
        return parts.scheme == "http" and not is_loopback(named)
    except ValueError:
        return False


def _is_under(address: str, prefix: str) -> bool:
    # "http://a.example" must not cover "http://a.example.evil.example".
    if address == prefix:
        return True
    return address.startswith(prefix if prefix.endswith("/") else f"{prefix}/")
