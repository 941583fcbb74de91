"""The owner of a run in this process, which alone takes it from state to state.

The work on a run is a task that ends by itself or is stopped. What came of it is
decided once, after its end, and stored by a task that no request can stop: so
a run that is cancelled twice, or at its very end, has one end all the same, and
its `finished` is the last thing that is stored of it.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from dataclasses import replace

from cbench_server.errors import CbenchError, LostClaim, RunFailed, contained, said
from cbench_server.events import StateChanged
from cbench_server.results import Failure
from cbench_server.runs.connections import Connections
from cbench_server.runs.live_run import LiveRun
from cbench_server.runs.load import Load
from cbench_server.runs.owned_store import OwnedStore
from cbench_server.runs.ownership import Claim
from cbench_server.runs.services import Services
from cbench_server.scoring.shares import SHARE
from cbench_server.spec import Run, RunState

log = logging.getLogger(__name__)

WORKED_ON: ContextVar[str] = ContextVar("the run that is worked on", default="")
"""Lines of the log say to which run they belong."""

_RENEW_EVERY_S = 1.0
_SOMETHING = "a component of the run"


class RunOwner:
    """One run that this process owns.

    Args:
        claim: Kept until the run is over, or handed back.
        connections: What is open already; None to open it when the run's turn comes.
    """

    def __init__(
        self,
        services: Services,
        run: Run,
        claim: Claim,
        connections: Connections | None = None,
    ) -> None:
        self._run_id = run.run_id
        self._name = run.created_by
        self._claim = claim
        self._store = OwnedStore(services.store, claim, services.committed)
        self._live = LiveRun(replace(services, store=self._store), run, connections)
        self._is_cancelled = False
        self._is_lost = False
        self._working: asyncio.Task[None] | None = None
        self.task: asyncio.Task[None] | None = None
        """Ends when the run is let go."""

    @property
    def load(self) -> Load:
        """What the run has under way."""
        return self._live.load

    @property
    def away(self) -> str:
        """Why the store is waited for; empty while it is not."""
        return self._store.away

    async def explain_wait(self, reason: str) -> None:
        """Keep why a system is away, in the words of the client that started it."""
        if self._working is not None and not self._working.done():
            await self._store.unbroken(self._live.waiting.tell(reason))

    def begin(self, turn: AbstractAsyncContextManager[None], ended: Callable[[], None]) -> None:
        """Work on the run when its turn comes; `ended` is called when it is let go."""
        name = f"run {self._run_id}"
        self._working = asyncio.create_task(self._work(turn), name=name)
        self.task = asyncio.create_task(self._own(self._working, ended), name=name)
        self.task.add_done_callback(_log_death)

    def cancel(self) -> None:
        """Stop the work, if it goes on; the run ends as cancelled, with the rows it has."""
        if self._working is not None and not self._working.done():
            self._is_cancelled = True
            self._working.cancel()

    def drain(self) -> None:
        """Finish the calls in flight and hand the run back."""
        if not self._live.drain() and self._working is not None:
            self._working.cancel()

    def stop(self) -> None:
        """Hand the run back without waiting for the calls in flight."""
        self._live.drain()
        if self._working is not None:
            self._working.cancel()

    async def end(self, state: RunState, failure: Failure | None = None) -> None:
        """End a run that is not worked on, and let it go; raises StoreAway rather than wait."""
        self._store.is_patient = False
        try:
            await self._live.finish(state, failure)
        finally:
            await self._store.owners.release(self._claim)

    async def _work(self, turn: AbstractAsyncContextManager[None]) -> None:
        WORKED_ON.set(self._run_id)
        SHARE.set(self._name or self._run_id)
        keeping = asyncio.create_task(self._keep())
        try:
            async with turn:
                with contained(_SOMETHING):
                    await self._live.go()
        finally:
            keeping.cancel()

    async def _keep(self) -> None:
        """Keep the claim, and leave the run to whoever has it else."""
        while True:
            if not await self._store.owners.renew(self._claim):
                self._is_lost = True
                log.error('run "%s" has another owner by now, and is left to it', self._run_id)
                self.stop()
                return
            await asyncio.sleep(_RENEW_EVERY_S)

    async def _own(self, working: asyncio.Task[None], ended: Callable[[], None]) -> None:
        WORKED_ON.set(self._run_id)
        try:
            await asyncio.wait([working])
            # What is decided here is made of what is stored, to which nothing comes any more.
            await self._store.settled()
            await self._conclude(working)
        except LostClaim as error:
            log.error("%s", error)
        finally:
            try:
                await self._live.close()
            finally:
                await self._store.owners.release(self._claim)
                ended()

    async def _conclude(self, working: asyncio.Task[None]) -> None:
        """Store what came of the work."""
        if working.cancelled():
            if self._is_cancelled:
                await self._live.finish(RunState.CANCELLED)
            elif not self._is_lost:
                await self._hand_back()
            return
        error = working.exception()
        if isinstance(error, LostClaim):
            raise error
        if error is not None:
            await self._live.finish(RunState.FAILED, self._failure(error))
        elif self._live.is_draining:
            await self._hand_back()
        else:
            await self._live.finish(RunState.SUCCEEDED)

    def _failure(self, error: BaseException) -> Failure:
        if isinstance(error, RunFailed):
            failure = self._live.waiting.failure(error.failure)
            return replace(failure, field=failure.field or self._live.field_of(error.who))
        if isinstance(error, CbenchError):
            return Failure("daemon", error.reason, str(error), field=error.field)
        log.error("run %s broke", self._run_id, exc_info=error)
        return Failure("daemon", "INTERNAL", said(error))

    async def _hand_back(self) -> None:
        """Say that whoever comes next may go on; a run that never had its turn is queued still."""
        stored = await self._store.get_run(self._run_id)
        if stored.state is not RunState.QUEUED:
            await self._store.append(
                self._run_id,
                [StateChanged(RunState.QUEUED, "the daemon shuts down")],
                update={"state": RunState.QUEUED, "waiting_reason": ""},
            )


def _log_death(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()):
        log.error("%s stopped and can be resumed", task.get_name(), exc_info=error)
