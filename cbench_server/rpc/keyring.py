"""Keyring: the grants in force, read again when their file changes, and the calls made by them."""

import asyncio
import logging
import os
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cbench_server.errors import Unauthenticated
from cbench_server.rpc import grants
from cbench_server.rpc.grants import BadGrant, Grant
from cbench_server.runs.callers import audit_log

log = logging.getLogger(__name__)

_LOOK_AGAIN_S = 1.0
_CERTIFICATE_NAMES = ("x509_common_name", "x509_subject_alternative_name")


class Keyring:
    """Tells who calls; without a token and a token file, everyone is the same anonymous admin.

    Args:
        token: One that opens everything.
        path: The token file; empty for none.
        has_certificates: Whether clients have to show certificates.
    """

    def __init__(self, token: str = "", path: str = "", *, has_certificates: bool = False) -> None:
        self._fixed = [grants.plain_grant(token)] if token else []
        self._path = Path(path) if path else None
        self._has_certificates = has_certificates
        self._seen: tuple[int, ...] = ()
        self._read: list[Grant] = []
        self._live: defaultdict[Grant, set[asyncio.Task[Any]]] = defaultdict(set)
        self._revoked: set[asyncio.Task[Any]] = set()
        self.is_locked = bool(token or path)
        """Whether callers need a token."""
        if self._path is not None:
            self._read = self._load(self._path)
            self._warn(self._path)

    @property
    def is_shared(self) -> bool:
        """Whether there are callers of several names."""
        return len({grant.name for grant in (*self._fixed, *self._read)}) > 1

    def find(self, metadata: Iterable[tuple[str, Any]], context: Any) -> Grant | None:
        """Return what a call may do, told by its headers and its certificate only."""
        self.look_again()
        token = None
        for key, value in metadata or ():
            if key == "authorization":
                text = value.decode("latin-1") if isinstance(value, bytes) else value
                token = text.removeprefix("Bearer ") if text.startswith("Bearer ") else ""
        shown: list[str] = []
        if token is None and self._has_certificates:
            shown = _names_in(context.auth_context())
        return grants.find((*self._fixed, *self._read), token, shown, time.time())

    @contextmanager
    def living(self, grant: Grant) -> Iterator[None]:
        """Keep the current task among the calls that end, by Unauthenticated, with their grant."""
        task = asyncio.current_task()
        assert task is not None
        self._live[grant].add(task)
        try:
            yield
        except asyncio.CancelledError:
            if task not in self._revoked:
                raise
            task.uncancel()
            raise Unauthenticated("the token of this call was revoked, or is over.") from None
        finally:
            self._revoked.discard(task)
            self._live[grant].discard(task)
            if not self._live[grant]:
                del self._live[grant]

    async def keep_watch(self) -> None:
        """End the calls of grants that are revoked or over, for as long as the daemon lives."""
        while True:
            await asyncio.sleep(_LOOK_AGAIN_S)
            self.look_again()
            now = time.time()
            for grant in [each for each in self._live if each.expires and each.expires <= now]:
                self._end(grant)

    def look_again(self) -> None:
        """Read the file again if it is another than before; a bad line in it harms no other."""
        if self._path is None:
            return
        try:
            if _signature(self._path) == self._seen:
                return
            found = self._load(self._path, is_first=False)
        except (BadGrant, OSError, UnicodeDecodeError) as error:
            if self._seen:
                log.error("token_file %s is left as it was: %s", self._path, error)
                self._seen = ()
            return
        before, self._read = self._read, found
        self._tell_changes(before, found)
        for grant in [each for each in self._live if each not in {*self._fixed, *found}]:
            self._end(grant)

    def _load(self, path: Path, *, is_first: bool = True) -> list[Grant]:
        seen = _signature(path)
        found, wrong = grants.parse_lines(path.read_text().splitlines())
        if not self._has_certificates:
            wrong += [
                f'"{grant.name}" is known by a certificate, and tls_client_ca is not set.'
                for grant in found
                if grant.certificate
            ]
        if wrong and is_first:
            raise BadGrant(f"token_file {path}, {wrong[0]}")
        for each in wrong:
            log.error("token_file %s, %s The line is ignored.", path, each)
        self._seen = seen
        return found

    def _warn(self, path: Path) -> None:
        if not self._read and not self._fixed:
            log.warning("token_file %s holds no tokens yet, so nobody can call.", path)
        if any(grant.is_plain for grant in self._read) and path.stat().st_mode & 0o077:
            log.warning("token_file %s holds tokens that other users can read; chmod 600.", path)

    def _tell_changes(self, before: list[Grant], after: list[Grant]) -> None:
        for action, sentence, changed in (
            ("token-added", "was added", [each for each in after if each not in before]),
            ("token-revoked", "was revoked", [each for each in before if each not in after]),
        ):
            for grant in changed:
                roles = ",".join(sorted(grant.roles))
                audit_log.info(
                    'the token of "%s" (%s, %s) %s',
                    grant.name,
                    grant.id,
                    roles,
                    sentence,
                    extra={"action": action, "token": grant.name, "id": grant.id, "roles": roles},
                )

    def _end(self, grant: Grant) -> None:
        for task in self._live[grant] - self._revoked:
            self._revoked.add(task)
            task.cancel()


def _signature(path: Path) -> tuple[int, ...]:
    found = os.stat(path)
    return (found.st_mtime_ns, found.st_size, found.st_ino)


def _names_in(shown: Any) -> list[str]:
    return [
        name.decode("utf-8", "replace")
        for key in _CERTIFICATE_NAMES
        for name in (shown or {}).get(key, ())
    ]
