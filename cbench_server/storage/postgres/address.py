"""Addresses of PostgreSQL stores, of which the password is never shown."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cbench_server.errors import InvalidInput
from cbench_server.lazy_imports import require

SCHEMES = ("postgresql://", "postgres://")
_SECRETS = ("password", "sslpassword")
_HIDDEN = "***"

# A peer that is gone without a word is noticed within half a minute, and not after hours.
_PATIENCE = {
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}


@dataclass(frozen=True)
class Address:
    """Where a database is and how to enter it."""

    parameters: dict[str, str] = field(repr=False)
    """As libpq knows them, the password among them."""
    name: str
    """How it is called in messages."""

    def without_secrets(self, text: str) -> str:
        """Return a message of the database or of its driver, whatever it quotes."""
        for name in _SECRETS:
            if secret := self.parameters.get(name):
                text = text.replace(secret, _HIDDEN)
        return " ".join(text.split())


def read_address(text: str) -> Address:
    """Read postgresql://USER@HOST:PORT/NAME; raise InvalidInput without repeating it."""
    if not text.startswith(SCHEMES):
        raise InvalidInput(
            'setting "store" must begin with postgresql://, such as '
            "postgresql://user@host:5432/name. Leave it out to keep runs in a file under home."
        )
    require("psycopg", "a store in PostgreSQL needs the package")
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        given = conninfo_to_dict(text)
    except ProgrammingError:
        # What libpq says quotes a part of the address, which may be of the password.
        raise InvalidInput(
            'setting "store" is no address that PostgreSQL understands. Write it as '
            "postgresql://user:password@host:5432/name, with %XX for special characters of the "
            "password."
        ) from None
    parameters = _PATIENCE | {name: str(value) for name, value in given.items()}
    return Address(parameters, f"postgresql://{_places(given)}/{given.get('dbname', '')}")


def _places(given: Mapping[str, Any]) -> str:
    """Name the hosts, which have a port each, one for all, or none."""
    hosts = str(given.get("host", "")).split(",")
    ports = str(given.get("port", "")).split(",")
    if len(ports) == 1:
        ports *= len(hosts)
    return ",".join(
        f"{host}:{port}" if port else host for host, port in zip(hosts, ports, strict=False)
    )
