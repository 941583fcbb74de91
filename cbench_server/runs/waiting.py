"""Waiting of a run: all that it waits for, in the words of whoever knows best.

A run sees of a system that is away that the connection broke. The client that has launched it
knows how the process ended, and its last words.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from cbench_server.events import StateChanged, StoredEvent, is_remark
from cbench_server.results import Failure
from cbench_server.runs.store import RunStore
from cbench_server.spec import RunNote, RunState, renewed

ENDED = "SYSTEM_ENDED"
_LONGEST = 4000
_SYSTEMS = "its systems"


class Waiting:
    """What one run waits for, and the state that comes of it."""

    def __init__(self, store: RunStore, run_id: str) -> None:
        self._store = store
        self._run_id = run_id
        self._reasons: dict[str, str] = {}
        self._ended = ""
        """How a system ended, as the client says that launched it."""
        self._stored = StateChanged(RunState.RUNNING)
        self._storing = asyncio.Lock()

    def explained(
        self, batch: Sequence[StoredEvent]
    ) -> tuple[Sequence[StoredEvent], dict[str, Any]]:
        """Return a batch with the whole reasons, and the changes of the run that belong to it."""
        changes: dict[str, Any] = {}
        events: list[StoredEvent] = []
        for event in batch:
            if isinstance(event, StateChanged) and is_remark(event):
                event = replace(event, state=self._stored.state)
            elif isinstance(event, StateChanged):
                is_away = event.state is RunState.WAITING
                self._set(_SYSTEMS, event.reason if is_away else None)
                if not is_away:
                    self._ended = ""
                event = self._stored = self._now
                changes = _changes(event)
            events.append(event)
        return events, changes

    async def note(self, who: str, reason: str | None) -> None:
        """Note that something is away, or back, and store the state if it changes by that."""
        self._set(who, reason)
        async with self._storing:
            if self._now != self._stored:
                self._stored = self._now
                await self._append([self._stored], _changes(self._stored))

    async def tell(self, reason: str) -> None:
        """Keep what a client says of the end of a system, unless the run is over."""
        run = await self._store.get_run(self._run_id)
        if run.state.is_final:
            return
        self._ended = reason if len(reason) <= _LONGEST else reason[:_LONGEST] + "…"
        changes: dict[str, Any] = {"notes": renewed(run.notes, [RunNote(ENDED, self._ended)])}
        events: list[StoredEvent] = []
        async with self._storing:
            if self._now != self._stored:
                self._stored = self._now
                events, changes = [self._stored], changes | _changes(self._stored)
            await self._append(events, changes)

    def failure(self, failure: Failure) -> Failure:
        """Return why a run failed, with what was told of the system that stayed away."""
        if failure.reason != "SYSTEM_GONE" or not self._ended:
            return failure
        return replace(failure, message=f"{failure.message} {self._ended}")

    async def _append(self, events: Sequence[StoredEvent], changes: dict[str, Any]) -> None:
        await self._store.append(self._run_id, events, update=changes)

    def _set(self, who: str, reason: str | None) -> None:
        if reason is None:
            self._reasons.pop(who, None)
        else:
            self._reasons[who] = reason

    @property
    def _now(self) -> StateChanged:
        if not self._reasons:
            return StateChanged(RunState.RUNNING)
        who, reason = next(iter(self._reasons.items()))
        if who == _SYSTEMS:
            reason = f"{reason} {self._ended}".rstrip()
        return StateChanged(RunState.WAITING, reason)


def _changes(event: StateChanged) -> dict[str, Any]:
    return {"state": event.state, "waiting_reason": event.reason}
