"""What this daemon lacks for a run that nobody works on, so that another one must take it up."""

import time
from collections.abc import Collection

from cbench_server.events import StateChanged
from cbench_server.runs.ownership import Claim, process_name
from cbench_server.runs.services import Services
from cbench_server.spec import Run, RunState

# A queued run may have to wait only for the turn of a daemon that has what it needs.
_STORED_AFTER_S = 10.0
_BEGINNING = "no daemon has taken it up: "


class Lacking:
    """What was found to be missing here, by run; kept only while nobody works on it."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._found: dict[str, tuple[str, float]] = {}

    def of(self, run_id: str) -> str:
        """Return why this daemon does not work on a run, empty if it would."""
        return self._found.get(run_id, ("", 0.0))[0]

    def found(self, run: Run) -> str:
        """Look what a run needs and is not here; return it as the reason why it waits."""
        missing = self._services.missing(run) if self._services.missing else []
        if not missing:
            self._found.pop(run.run_id, None)
            return ""
        reason = (
            f"{_BEGINNING}{process_name()} lacks {', '.join(missing)}. It goes on at a daemon of "
            "this store that has it."
        )
        _, since = self._found.get(run.run_id, ("", time.monotonic()))
        self._found[run.run_id] = (reason, since)
        return reason

    def forget_but(self, run_ids: Collection[str]) -> None:
        """Keep what is known of these runs alone; others have found an owner."""
        self._found = {each: self._found[each] for each in run_ids if each in self._found}

    def is_to_be_stored(self, run: Run) -> bool:
        """Tell whether others should know too, even those who ask no daemon.

        What one of several daemons says is enough.
        """
        reason, since = self._found[run.run_id]
        if run.state is RunState.WAITING and run.waiting_reason.startswith(_BEGINNING):
            return process_name() in run.waiting_reason and run.waiting_reason != reason
        return run.state is not RunState.QUEUED or time.monotonic() > since + _STORED_AFTER_S

    async def store(self, run: Run, claim: Claim) -> None:
        """Have a run wait with the reason that was found."""
        reason, _ = self._found[run.run_id]
        await self._services.store.append(
            run.run_id,
            [StateChanged(RunState.WAITING, reason)],
            update={"state": RunState.WAITING, "waiting_reason": reason},
            claim=claim,
        )
