"""The newest events of the runs this process writes, so that live watchers need not read them back.

Only what is committed gets here. A watcher that falls behind reads from the
file, so a slow one costs no memory.
"""

from collections import OrderedDict, deque
from collections.abc import Sequence
from itertools import islice

from cbench_server.events import RowScored, RunFinished, Stored, StoredEvent

# Of what is encoded; as objects it takes about four times as much.
_MAX_BYTES = 1_000_000
_MAX_RUNS = 8


class _Tail:
    """The last events of one run, without gaps."""

    def __init__(self) -> None:
        self.events: deque[tuple[Stored, int]] = deque()
        self.size = 0


class Tails:
    """Bounded tails by run; used on the event loop only."""

    def __init__(self) -> None:
        self._tails: OrderedDict[str, _Tail] = OrderedDict()

    def add(
        self,
        run_id: str,
        last_seq: int,
        events: Sequence[StoredEvent],
        sizes: Sequence[int],
        time: float,
    ) -> None:
        """Take events that were just committed as the run's last ones.

        With its end a run's tail is forgotten: who is late reads from the file.
        """
        if events and isinstance(events[-1], RunFinished):
            self.forget(run_id)
            return
        tail = self._tails.setdefault(run_id, _Tail())
        self._tails.move_to_end(run_id)
        if len(self._tails) > _MAX_RUNS:
            self._tails.popitem(last=False)
        first_seq = last_seq - len(events) + 1
        if tail.events and tail.events[-1][0].seq != first_seq - 1:
            tail.events.clear()
            tail.size = 0
        for seq, (event, size) in enumerate(zip(events, sizes, strict=True), first_seq):
            tail.events.append((Stored(seq, time, event), size))
            tail.size += size
        while tail.size > _MAX_BYTES and tail.events:
            tail.size -= tail.events.popleft()[1]

    def forget(self, run_id: str) -> None:
        """Drop a run's tail."""
        self._tails.pop(run_id, None)

    def last_seq(self, run_id: str) -> int | None:
        """Return the seq of the run's last event, if it is known here."""
        tail = self._tails.get(run_id)
        return tail.events[-1][0].seq if tail and tail.events else None

    def read(
        self, run_id: str, after_seq: int, limit: int, max_bytes: int, rows: bool
    ) -> list[Stored] | None:
        """Return the events after `after_seq`; None where they are not all here."""
        tail = self._tails.get(run_id)
        if not tail or not tail.events or tail.events[0][0].seq > after_seq + 1:
            return None
        page: list[Stored] = []
        size = 0
        start = after_seq + 1 - tail.events[0][0].seq
        for stored, bytes_held in islice(tail.events, start, None):
            if not rows and isinstance(stored.event, RowScored):
                continue
            page.append(stored)
            size += bytes_held
            if len(page) >= limit or size >= max_bytes:
                break
        return page
