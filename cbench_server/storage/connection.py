"""What reads and writes need of a database: connections that bring its statements and manners."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from cbench_server.errors import StoreError, StoreFull

P = ParamSpec("P")
T = TypeVar("T")

READERS = 2


class Cursor(Protocol):
    """The rows of one statement."""

    @property
    def rowcount(self) -> int:
        """How many rows were changed."""
        ...

    def fetchone(self) -> Any:
        """Return the next row, None at the end."""
        ...

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""
        ...

    def __iter__(self) -> Iterator[Any]: ...

    def close(self) -> None:
        """Let go of rows that were not read."""
        ...


class Connection(Protocol):
    """A connection of one thread; every transaction is begun and ended by name."""

    sql: Any
    """The module of this database's statements."""
    beyond_all_runs: Any
    """What sorts after every run id."""

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        ...

    def begin_writing(self) -> None:
        """Begin a transaction that may write."""
        ...

    def begin_reading(self) -> None:
        """Begin one that sees the store as it is now, whatever is written meanwhile."""
        ...

    def commit(self) -> None:
        """End a transaction; what it wrote is on disk then."""
        ...

    def rollback(self) -> None:
        """End a transaction, if one is open, as if it had not been."""
        ...

    def execute(self, statement: str, parameters: Any = ..., /) -> Cursor:
        """Carry out a statement whose rows are few."""
        ...

    def stream(self, statement: str, parameters: Any, /) -> Cursor:
        """Carry out one within a transaction whose rows may be more than memory holds."""
        ...

    def insert_run(self, columns: dict[str, Any]) -> int:
        """Insert a run's row and return its key."""
        ...

    def insert_events(self, values: list[Any]) -> None:
        """Insert events, all of them new, the columns of one after those of another."""
        ...

    def insert_examples(self, values: list[Any]) -> int:
        """Insert examples but for those that are there; return how many were new."""
        ...

    def used_bytes(self) -> int:
        """Return the bytes that are in use."""
        ...

    def is_over(self, most: int) -> bool:
        """Tell whether that is so many or more; asked before each write that adds to them."""
        ...

    def compact_some(self) -> bool:
        """Give some of the space that deletions left back; False once there is none."""
        ...

    def stop_waiting(self) -> None:
        """Have a commit give up on a database that is away; called by another thread."""
        ...

    def empty_log(self) -> None:
        """Do what a writer does last, where there is such a thing."""
        ...

    def close(self) -> None:
        """End it."""
        ...


class Database(Protocol):
    """Where a store is, and what to make of what goes wrong there."""

    name: str
    """How it is called in messages."""
    errors: tuple[type[Exception], ...]
    """What its driver raises."""
    conflicts: tuple[type[Exception], ...]
    """What that raises where something that should be new is there already."""

    def connect(self, *, read_only: bool = False) -> Connection:
        """Open a connection."""
        ...

    def check_reading(self) -> None:
        """Raise StoreAway where what is read may be gone later."""
        ...

    def explain(self, error: Exception) -> StoreError:
        """Say what was met, and what to do about it."""
        ...

    def is_damage(self, error: Exception) -> bool:
        """Tell whether it met something in its files that it did not write."""
        ...

    def may_be_of_one(self, error: Exception) -> bool:
        """Tell whether one of several writes may have led to an error, rather than the database."""
        ...

    def is_passing(self, error: Exception) -> bool:
        """Tell whether a transaction stood in another's way, and may be tried again at once."""
        ...

    def needs_another(self, error: Exception) -> bool:
        """Tell whether no connection of now can do what failed, but one that is made later."""
        ...

    def keeps_readers(self) -> bool:
        """Tell whether a connection that reads may stay open."""
        ...


@contextmanager
def explained_by(database: Database) -> Iterator[None]:
    """Turn the driver's errors inside the context into ours."""
    try:
        yield
    except database.errors as error:
        raise database.explain(error) from error


def over_quota(name: str, most: int) -> StoreFull:
    """Say that a store has all that it may."""
    return StoreFull(
        f"{name} has reached {most / (1 << 20):,.0f} MB, the max_store_mb of this daemon; what is "
        "stored is kept. Delete runs (cbench runs prune --help), or raise max_store_mb; then "
        "resume the run."
    )


class Readers:
    """A few threads with a connection each, for reads that must not hold up the loop."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._local = threading.local()
        self._connections: list[Connection] = []
        self.pool = ThreadPoolExecutor(READERS, "cbench-read")

    def call(
        self,
        read: Callable[Concatenate[Any, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run `read` on this pool thread's connection."""
        with explained_by(self._database):
            self._database.check_reading()
            connection: Connection | None = getattr(self._local, "connection", None)
            if connection is None:
                connection = self._database.connect(read_only=True)
                if not self._database.keeps_readers():
                    with closing(connection):
                        return read(connection, *args, **kwargs)
                self._local.connection = connection
                self._connections.append(connection)
            return read(connection, *args, **kwargs)

    def close(self) -> None:
        """Wait for reads under way, then close the connections."""
        self.pool.shutdown()
        for connection in self._connections:
            connection.close()
