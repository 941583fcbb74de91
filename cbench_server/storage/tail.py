"""The newest events of the runs this process writes, so that live watchers need not read them back.

Only what is committed gets here. A watcher that falls behind reads from the
file, so a slow one costs no memory.
"""

from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import NamedTuple

from cbench_server.events import RowScored, RunFinished, Stored, StoredEvent

# Of what is encoded; as objects it takes about four times as much.
_MAX_BYTES = 1_000_000
_MAX_RUNS = 8


class _Block(NamedTuple):
    """The events of one commit."""

    first: int
    time: float
    events: Sequence[StoredEvent]
    sizes: Sequence[int]
    size: int

    @property
    def last(self) -> int:
        return self.first + len(self.events) - 1


class _Tail:
    """The last events of one run, without gaps, commit by commit."""

    def __init__(self) -> None:
        self.blocks: deque[_Block] = deque()
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
        if not events:
            return
        block = _Block(last_seq - len(events) + 1, time, events, sizes, sum(sizes))
        if tail.blocks and tail.blocks[-1].last != block.first - 1:
            tail.blocks.clear()
            tail.size = 0
        tail.blocks.append(block)
        tail.size += block.size
        while tail.size > _MAX_BYTES and tail.blocks:
            tail.size -= tail.blocks.popleft().size

    def forget(self, run_id: str) -> None:
        """Drop a run's tail."""
        self._tails.pop(run_id, None)

    def last_seq(self, run_id: str) -> int | None:
        """Return the seq of the run's last event, if it is known here."""
        tail = self._tails.get(run_id)
        return tail.blocks[-1].last if tail and tail.blocks else None

    def read(
        self, run_id: str, after_seq: int, limit: int, max_bytes: int, rows: bool
    ) -> list[Stored] | None:
        """Return the events after `after_seq`; None where they are not all here."""
        tail = self._tails.get(run_id)
        if not tail or not tail.blocks or tail.blocks[0].first > after_seq + 1:
            return None
        # A live watcher is near the end of it.
        unseen: list[_Block] = []
        for block in reversed(tail.blocks):
            if block.last <= after_seq:
                break
            unseen.append(block)
        page: list[Stored] = []
        size = 0
        for block in reversed(unseen):
            for place in range(max(0, after_seq + 1 - block.first), len(block.events)):
                event = block.events[place]
                if not rows and isinstance(event, RowScored):
                    continue
                page.append(Stored(block.first + place, block.time, event))
                size += block.sizes[place]
                if len(page) >= limit or size >= max_bytes:
                    return page
        return page
