"""PostgreSQL: how a connection is made, and its errors in words a person can act on."""

from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import errors
from psycopg.types.string import StrDumperUnknown, TextBinaryLoader, TextLoader

from cbench_server.errors import StoreAway, StoreCorrupt, StoreError, StoreFull
from cbench_server.storage.connection import Database
from cbench_server.storage.postgres.address import Address
from cbench_server.storage.postgres.connection import PostgresConnection

OLDEST_SERVER = 130000
_ASLEEP_S = 10

# By SQLSTATE; those with two characters are of a whole class.
_FULL = ("53100",)
_AWAY = {
    "53300": "has no connection left for this daemon. Raise its max_connections, or end others",
    "25006": "is read-only, as a standby is. Wait until it is the primary, or name that one",
    "25P03": "took this daemon for dead, which was asleep. What it wrote last is tried again",
    "57P03": "is starting up or shutting down",
    "57P01": "was shut down",
    "28": "does not let this daemon in. Check the user, the password and pg_hba.conf",
    "3D": "has no database of that name. Make it with createdb, or correct the address",
    "42501": "does not let this user read or write the tables. Grant that, or name another user",
    "53": "is short of something. Look into its log",
    "58": "has trouble with its disk. Look into its log",
    "08": "cannot be reached",
    "57": "broke off what was asked",
}
# Of an attempt to connect libpq tells no SQLSTATE, but what the server said.
_SAID = {
    "too many clients": "53300",
    "connection slots": "53300",
    "too many connections": "53300",
    "starting up": "57P03",
    "shutting down": "57P03",
    "authentication failed": "28",
    "pg_hba.conf": "28",
    "no password supplied": "28",
    "role ": "28",
    "database ": "3D",
}
_DAMAGED = ("XX001", "XX002")
_PASSING = (errors.DeadlockDetected, errors.SerializationFailure)

_NUL, _ESCAPE = "\0", "\x1a"


class _Text(StrDumperUnknown):
    """Texts, with NUL written in two characters: PostgreSQL has none in its texts."""

    def dump(self, obj: str) -> bytes:
        if _NUL in obj or _ESCAPE in obj:
            obj = obj.replace(_ESCAPE, _ESCAPE * 2).replace(_NUL, f"{_ESCAPE}0")
        return obj.encode()


def _unescaped(text: str) -> str:
    if _ESCAPE not in text:
        return text
    parts = text.split(_ESCAPE * 2)
    return _ESCAPE.join(part.replace(f"{_ESCAPE}0", _NUL) for part in parts)


class _LoadedText(TextLoader):
    def load(self, data: "bytes | bytearray | memoryview") -> str:
        return _unescaped(bytes(data).decode())


class _LoadedBinaryText(TextBinaryLoader):
    def load(self, data: "bytes | bytearray | memoryview") -> str:
        return _unescaped(bytes(data).decode())


class PostgresDatabase:
    """The `Database` at an address; that one says what its methods do."""

    errors: tuple[type[Exception], ...] = (psycopg.Error,)
    conflicts: tuple[type[Exception], ...] = (psycopg.IntegrityError,)

    def __init__(self, address: Address) -> None:
        self._address = address
        self.name = address.name

    def open(self, *, autocommit: bool = True) -> "psycopg.Connection[Any]":
        """Make a connection of psycopg's, in which every transaction is begun by name."""
        connection = psycopg.connect(
            **self._address.parameters,  # type: ignore[arg-type]
            autocommit=autocommit,
            client_encoding="UTF8",
            application_name="cbench-server",
        )
        # A process that sleeps within a transaction would keep its runs from being taken over.
        connection.execute(f"SET idle_in_transaction_session_timeout = '{_ASLEEP_S}s'")
        if not autocommit:
            connection.commit()
        connection.adapters.register_dumper(str, _Text)
        for name in ("text", "varchar"):
            connection.adapters.register_loader(name, _LoadedText)
            connection.adapters.register_loader(name, _LoadedBinaryText)
        return connection

    def connect(self, *, read_only: bool = False) -> PostgresConnection:
        return PostgresConnection(self.open)

    def check_reading(self) -> None:
        """Do nothing: the server shows what it keeps."""

    def explain(self, error: Exception) -> StoreError:
        said = self._address.without_secrets(str(error))
        code = (error.sqlstate if isinstance(error, psycopg.Error) else None) or ""
        if not code and "FATAL" in said:
            code = next((code for words, code in _SAID.items() if words in said), "")
        if self.is_damage(error):
            return StoreCorrupt(
                f"{self.name} has met damage in its files ({said}). Restore a backup of it; "
                "docs/postgresql.md says how."
            )
        if code in _FULL:
            return StoreFull(
                f"no space is left to write {self.name}; what could not be written is left out "
                "whole. Free some space."
            )
        if reason := _AWAY.get(code) or _AWAY.get(code[:2]):
            return StoreAway(f"{self.name} {reason} ({said}).")
        if isinstance(error, psycopg.OperationalError):
            return StoreAway(f"{self.name} cannot be reached ({said}).")
        return StoreError(f"{self.name} could not be used: {said}.")

    def is_damage(self, error: Exception) -> bool:
        return isinstance(error, psycopg.Error) and error.sqlstate in _DAMAGED

    def may_be_of_one(self, error: Exception) -> bool:
        return not isinstance(error, psycopg.OperationalError)

    def is_passing(self, error: Exception) -> bool:
        return isinstance(error, _PASSING)

    def needs_another(self, error: Exception) -> bool:
        return False

    def keeps_readers(self) -> bool:
        return True


if TYPE_CHECKING:
    _is_a_database: type[Database] = PostgresDatabase
