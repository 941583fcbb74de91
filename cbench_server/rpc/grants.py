"""Grants: tokens and certificates by name, with what they may do, as lines of the token file.

A line is `NAME ROLES SECRET` and options, or only a token, which is an admin's:

    ci      run         sha256:9f86d0...                  expires=2027-01-31
    lab     attach      sha256:60303a...                  names=pruner,summarizer
    alice   run,attach  cert:alice.example.com            names=mine

A secret is the digest of a token, never the token, or the name in a client's certificate.
Names that hold blanks, commas or `%` are written as in a URL.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from urllib.parse import quote, unquote

from cbench_server.errors import InvalidInput
from cbench_server.rpc.roles import ROLES
from cbench_server.runs.callers import ADMIN

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_PREFIX = "cbench_"


class BadGrant(InvalidInput):
    """A grant, or a line of a token file, cannot be meant."""

    reason = "BAD_TOKEN_FILE"


@dataclass(frozen=True)
class Grant:
    """What the bearer of a token, or of a certificate, may do."""

    name: str
    roles: frozenset[str]
    secret: str
    """`sha256:` and the digest of a token, or `cert:` and a name in a certificate."""
    names: frozenset[str] = frozenset()
    """What it may attach."""
    expires: float | None = None
    """When it ends, in seconds since the epoch."""
    is_plain: bool = False
    """Whether the token itself stands in the file."""

    @property
    def id(self) -> str:
        """A short handle that tells nothing of the token."""
        kind, _, rest = self.secret.partition(":")
        return rest[:8] if kind == "sha256" else digest_of(self.secret)[7:15]

    @property
    def certificate(self) -> str:
        """The name in a certificate that stands for a token; empty for a token."""
        return self.secret.removeprefix("cert:") if self.secret.startswith("cert:") else ""


def digest_of(token: str) -> str:
    """Digest a token. Tokens are random and long, so a slow digest would add nothing."""
    return f"sha256:{hashlib.sha256(token.encode()).hexdigest()}"


def new_token() -> str:
    """Make a token that nobody can guess, and that scanners for secrets can find."""
    return _PREFIX + secrets.token_urlsafe(32)


def plain_grant(token: str) -> Grant:
    """Return what a token without a name or role may do, which is everything."""
    return Grant(ADMIN, frozenset({ADMIN}), digest_of(token), is_plain=True)


def check(grant: Grant) -> Grant:
    """Refuse a grant that makes no sense."""
    if not _NAME.fullmatch(grant.name):
        raise BadGrant(
            f'"{grant.name[:80]}" cannot name a token: use letters, digits and . _ @ -, at most 64.'
        )
    unknown = sorted(grant.roles - ROLES.keys())
    if unknown or not grant.roles:
        said = f'there is no role "{unknown[0]}"' if unknown else f'"{grant.name}" has no role'
        raise BadGrant(f"{said}. Roles are {', '.join(ROLES)}.")
    if "attach" in grant.roles and not grant.names:
        raise BadGrant(
            f'"{grant.name}" has the role attach and no names that it may attach. List them: '
            "--attach NAME, or names=NAME,NAME in the token file."
        )
    if grant.names and "attach" not in grant.roles:
        raise BadGrant(
            f'"{grant.name}" lists names to attach, and lacks the role attach. Add it, or leave '
            "the names out."
        )
    if not (_DIGEST.fullmatch(grant.secret) or grant.certificate):
        raise BadGrant(
            f'"{grant.name}" has neither sha256: and a digest nor cert: and a name. '
            "Make a token with: cbench tokens create"
        )
    return grant


def parse_line(line: str) -> Grant | None:
    """Read a line; None for one that is empty or a comment."""
    words = line.split()
    if not words or line.lstrip().startswith("# ") or words == ["#"]:
        return None
    if len(words) == 1:
        return plain_grant(words[0])
    if len(words) < 3:
        raise BadGrant("a line is one token, or NAME ROLES SECRET; this one has two words.")
    name, roles, secret, *options = words
    if secret.startswith("cert:"):
        secret = unquote(secret)
    grant = Grant(name, frozenset(roles.split(",")), secret)
    for option in options:
        key, _, value = option.partition("=")
        if key == "names":
            grant = replace(grant, names=frozenset(map(unquote, value.split(","))) - {""})
        elif key == "expires":
            grant = replace(grant, expires=time_of(value))
        else:
            raise BadGrant(f'"{name}" has an option "{key}"; there are names= and expires=.')
    return check(grant)


def format_line(grant: Grant) -> str:
    """Write a grant as `parse_line` reads it."""
    cert = grant.certificate
    words = [
        grant.name,
        ",".join(sorted(grant.roles)),
        f"cert:{quote(cert)}" if cert else grant.secret,
    ]
    if grant.names:
        words.append(f"names={','.join(quote(name, safe='') for name in sorted(grant.names))}")
    if grant.expires is not None:
        words.append(f"expires={text_of(grant.expires)}")
    return " ".join(words)


def parse_lines(lines: Iterable[str]) -> tuple[list[Grant], list[str]]:
    """Read a token file: the grants, and what is wrong with other lines."""
    grants, wrong = [], []
    for number, line in enumerate(lines, 1):
        try:
            if grant := parse_line(line):
                grants.append(grant)
        except BadGrant as error:
            wrong.append(f"line {number}: {error}")
    return grants, wrong


def find(
    grants: Sequence[Grant], token: str | None, certificates: Iterable[str], now: float
) -> Grant | None:
    """Return what a call may do by its token, or else by the names in its certificate."""
    found = None
    if token is not None:
        digest = digest_of(token)
        for grant in grants:
            # Every one is compared, so that timing tells nothing about which came close.
            if hmac.compare_digest(grant.secret.encode(), digest.encode()):
                found = grant
    else:
        shown = {f"cert:{name}" for name in certificates if name}
        found = next((grant for grant in grants if grant.secret in shown), None)
    is_over = found is not None and found.expires is not None and found.expires <= now
    return None if is_over else found


def time_of(text: str) -> float:
    """Read a date, or a date and time, in UTC unless it says otherwise."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise BadGrant(
            f'"{text}" is not a valid time; write 2027-01-31 or 2027-01-31T12:00:00Z.'
        ) from None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def text_of(when: float) -> str:
    """Write a time as `time_of` reads it."""
    return datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
