"""What a process does unasked: it performs intents, and takes up runs that nobody works on."""

import asyncio
import logging

from cbench_server.durable import failpoints
from cbench_server.errors import CbenchError, StoreError, said
from cbench_server.runs.intents import Answer, Intent, OwnedElsewhere
from cbench_server.runs.orchestrator import Orchestrator

log = logging.getLogger("cbench_server.daemon")

_LOOK_EVERY_S = 1.0
_RECOVER_AGAIN_S = 5.0
_RECOVER_AFTER_S = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)


async def attend(orchestrator: Orchestrator, *, takes_runs: bool, is_shared: bool) -> None:
    """Go on until it is cancelled.

    `takes_runs` is for a daemon, which takes up what others have left; where it shares
    the store it does so at any time, else when it starts.
    """
    if takes_runs:
        # The process before this one may still be on its way out, and hold its runs until it is.
        for pause in _RECOVER_AFTER_S:
            await asyncio.sleep(pause)
            await _recover(orchestrator)
            if not orchestrator.passed_over or is_shared:
                break
    while True:
        await orchestrator.store.intents.wait(_LOOK_EVERY_S)
        try:
            if orchestrator.is_busy or takes_runs:
                await perform_intents(orchestrator, may_take=takes_runs)
            if takes_runs and is_shared and not orchestrator.is_draining:
                await _recover(orchestrator)
        except StoreError:
            # Whoever works on a run tells of it.
            await asyncio.sleep(_LOOK_EVERY_S)
        except Exception:
            log.exception("what is asked of this daemon cannot be read")
            await asyncio.sleep(_LOOK_EVERY_S)


async def perform_intents(orchestrator: Orchestrator, *, may_take: bool) -> None:
    """Do what is asked of this process, and, where it may, what is asked of none that lives."""
    chosen = [
        intent
        for intent in await orchestrator.store.intents.unanswered()
        if may_take or orchestrator.has(intent.run_id)
    ]
    await asyncio.gather(*(_perform(orchestrator, intent) for intent in chosen))


async def _perform(orchestrator: Orchestrator, intent: Intent) -> None:
    try:
        if not await orchestrator.perform(intent):
            return
        failpoints.hit("intent.performed")
        answer = Answer()
    except (OwnedElsewhere, StoreError):
        return
    except CbenchError as error:
        answer = Answer(str(error))
    except Exception as error:
        # One that another version has asked must not keep the others from being done.
        log.exception("run %s cannot be dealt with as was asked", intent.run_id)
        answer = Answer(f"{intent.kind} cannot be done: {said(error)}")
    await orchestrator.store.intents.answer(intent, answer)


async def _recover(orchestrator: Orchestrator) -> None:
    told = ""
    while True:
        try:
            resumed = await orchestrator.recover()
        except StoreError as error:
            if str(error) != told:
                told = str(error)
                log.error("unfinished runs cannot be taken up yet: %s", error)
            await asyncio.sleep(_RECOVER_AGAIN_S)
            continue
        if resumed:
            log.info("resumed unfinished runs", extra={"runs": resumed})
        return
