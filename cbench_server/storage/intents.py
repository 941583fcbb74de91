"""Intents as a table holds them; one that is damaged is as if it had never been asked."""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from cbench_server.runs.intents import Answer, Intent, Intents
from cbench_server.storage import sums
from cbench_server.storage.connection import Connection
from cbench_server.storage.damage import SIGNS, is_sum

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
            columns = dict(zip(names, asked, strict=True)) | {"sum": sums.row_sum(asked)}
            return int(connection.execute(connection.sql.INSERT_INTENT, columns).fetchone()[0])

        number = await self._store.writer.write(lambda write: insert(write.connection))
        self.tell()
        return number

    async def unanswered(self) -> list[Intent]:
        """See Intents."""
        return await self._store.read(_unanswered)

    async def answer(self, intent: Intent, answer: Answer) -> None:
        """See Intents."""
        given = {"intent": intent.id, "new_answer": msgspec.msgpack.encode(answer)}
        await self._store.writer.write(
            lambda write: write.connection.execute(write.connection.sql.SET_ANSWER, given).rowcount
        )

    async def answer_to(self, number: int) -> Answer | None:
        """See Intents."""
        asked = {"intent": number}
        found = await self._store.read(
            lambda connection: connection.execute(connection.sql.READ_ANSWER, asked).fetchone()
        )
        if found is not None and found[0] is None:
            return None
        await self._store.writer.write(
            lambda write: (
                write.connection.execute(write.connection.sql.DELETE_INTENT, asked) and None
            )
        )
        # One that is gone, or damaged, was dealt with as far as can be told.
        try:
            return msgspec.msgpack.decode(found[0], type=Answer) if found else Answer()
        except SIGNS:
            return Answer()

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


def _unanswered(connection: Connection) -> list[Intent]:
    intents = []
    for number, *asked, total in connection.execute(connection.sql.OPEN_INTENTS).fetchall():
        run_id, kind, arguments, _ = asked
        if is_sum(total, lambda asked=asked: sums.row_sum(asked)):
            intents.append(Intent(number, run_id, kind, msgspec.msgpack.decode(arguments)))
    return intents


if TYPE_CHECKING:
    _are_intents: type[Intents] = StoredIntents
