"""Housekeeping of a daemon: old runs, cut-off deletions, unused uploads and what the dead left."""

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from cbench_server.daemon.settings import Settings
from cbench_server.errors import CbenchError

if TYPE_CHECKING:
    from cbench_server.runs.store import RetentionRule, RunStore
    from cbench_server.storage.uploads import UploadStore

log = logging.getLogger("cbench_server.daemon")

_EVERY_S = 3600.0
_MB = 1024 * 1024


def rule_of(settings: Settings) -> "RetentionRule":
    """Return what the settings keep."""
    from cbench_server.runs.store import RetentionRule

    return RetentionRule(
        older_than=settings.retention_days * 86400 or None,
        keep=settings.retention_runs or None,
        max_bytes=settings.retention_mb * _MB or None,
    )


async def keep_house(
    store: "RunStore",
    uploads: "UploadStore",
    home: Path,
    settings: Settings,
    every_s: float = _EVERY_S,
) -> None:
    """Tidy up at the start and then every hour; what fails is logged, and tried again then."""
    from cbench_server.runs.store import RetentionRule

    rule = rule_of(settings)
    while True:
        try:
            finished = await store.finish_deletions()
            if finished:
                log.info("finished deletions that were cut off", extra={"runs": finished})
            if rule != RetentionRule():
                pruned = await store.prune(rule)
                if pruned:
                    log.info("deleted old runs", extra={"runs": [each.run_id for each in pruned]})
            await clean(store, uploads, home)
        except (CbenchError, OSError) as error:
            log.warning("could not tidy up", extra={"error": str(error)})
        except Exception:
            log.exception("could not tidy up")
        await asyncio.sleep(every_s)


async def clean(store: "RunStore", uploads: "UploadStore", home: Path) -> list[str]:
    """Remove what no run and no process needs any more; return the names of the files."""
    from cbench_server.storage.leftovers import remove_leftovers

    removed = await asyncio.to_thread(remove_leftovers, home)
    stale = await asyncio.to_thread(uploads.unused)
    if stale:
        used = await store.uploads_in_use()
        if used is not None:
            removed += await asyncio.to_thread(uploads.remove, [*set(stale) - used])
    if removed:
        log.info("removed files that nothing needs", extra={"files": removed})
    return removed
