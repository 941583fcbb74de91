"""Intents as a table holds them; one that is damaged is as if it had never been asked."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from cbench_server.durable import failpoints
from cbench_server.runs.intents import Answer, Intent, Intents
from cbench_server.storage import sums
from cbench_server.storage.connection import Connection
from cbench_server.storage.damage import is_sum

if TYPE_CHECKING:
    from cbench_server.storage.sql_store import SqlStore

# Nobody waits for an answer so long.
_FORGOTTEN_AFTER_S = 3600.0


class StoredIntents:
    """The intents of one store. See Intents for its methods."""

    def __init__(
        self,
        store: "SqlStore",
        clock: Callable[[], float],
        tell_others: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._tell_others = tell_others
        self._told = asyncio.Event()

    async def ask(self, run_id: str, kind: str, arguments: Mapping[str, Any]) -> int:
        """See Intents."""
        now = self._clock()
        asked = (run_id, kind, msgspec.msgpack.encode(arguments), now)

        def insert(connection: Connection) -> int:
            connection.execute(connection.sql.FORGET_INTENTS, {"before": now - _FORGOTTEN_AFTER_S})
            names = ("run_id", "kind", "arguments", "time")
            columns = dict(zip(names, asked, strict=True)) | {"sum": sums.UNKNOWN}
            number = int(connection.execute(connection.sql.INSERT_INTENT, columns).fetchone()[0])
            # Its checksum covers the id, which the database has chosen.
            _set_answer(connection, (number, *asked), None)
            return number

        number = await self._store.writer.write(lambda write: insert(write.connection))
        failpoints.hit("intent.asked")
        self.tell()
        return number

    async def unanswered(self) -> list[Intent]:
        """See Intents."""
        return await self._store.read(_unanswered)

    async def is_open(self, intent: Intent) -> bool:
        """See Intents."""
        found = await self._store.read(lambda connection: _read(connection, intent.id))
        return found is not None and found[-1] is None

    async def answer(self, intent: Intent, answer: Answer) -> None:
        """See Intents."""
        encoded = msgspec.msgpack.encode(answer)

        def note(connection: Connection) -> None:
            asked = _read(connection, intent.id)
            if asked is not None:
                _set_answer(connection, asked[:-1], encoded)

        await self._store.writer.write(lambda write: note(write.connection))
        failpoints.hit("intent.answered")

    async def answer_to(self, number: int) -> Answer | None:
        """See Intents."""
        found = await self._store.read(lambda connection: _read(connection, number))
        if found is not None and found[-1] is None:
            return None
        await self._store.writer.write(
            lambda write: (
                write.connection.execute(write.connection.sql.DELETE_INTENT, {"intent": number})
                and None
            )
        )
        failpoints.hit("intent.forgotten")
        # One that is gone, or damaged, was dealt with as far as can be told.
        return msgspec.msgpack.decode(found[-1], type=Answer) if found else Answer()

    async def wait(self, timeout: float) -> None:
        """See Intents."""
        try:
            async with asyncio.timeout(timeout):
                await self._told.wait()
        except TimeoutError:
            pass
        self._told.clear()

    def tell(self) -> None:
        """See Intents."""
        self.heard()
        self._tell_others()

    def heard(self) -> None:
        """Wake those who wait here; called on the loop."""
        self._told.set()


def count_damaged(connection: Connection) -> int:
    """Return how many intents are not what was written."""
    return sum(not _is_sound(found) for found in connection.execute("SELECT * FROM intents"))


def _unanswered(connection: Connection) -> list[Intent]:
    found = connection.execute(connection.sql.OPEN_INTENTS).fetchall()
    return [
        Intent(number, run_id, kind, msgspec.msgpack.decode(arguments))
        for number, run_id, kind, arguments, *_ in filter(_is_sound, found)
    ]


def _read(connection: Connection, number: int) -> tuple[Any, ...] | None:
    """Return the columns of an intent, the answer last; None for one that is gone or damaged."""
    found = connection.execute(connection.sql.READ_INTENT, {"intent": number}).fetchone()
    return tuple(found[:-1]) if found is not None and _is_sound(found) else None


def _is_sound(columns: Sequence[Any]) -> bool:
    return is_sum(columns[-1], lambda: sums.row_sum(columns[:-1]))


def _set_answer(connection: Connection, asked: Sequence[Any], answer: bytes | None) -> None:
    total = sums.row_sum((*asked, answer))
    columns = {"intent": asked[0], "new_answer": answer, "new_sum": total}
    connection.execute(connection.sql.SET_ANSWER, columns)


if TYPE_CHECKING:
    _are_intents: type[Intents] = StoredIntents
