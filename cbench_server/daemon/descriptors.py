"""Descriptors of the process: as many as the system allows, and how many connections that bears."""

import logging
import resource

log = logging.getLogger("cbench_server.daemon")

RESERVED = 256
"""Descriptors that connections leave to the store, to systems and to programs; half of few."""


def raise_descriptors() -> None:
    """Raise the usual soft limit to the hard one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError) as error:
        # Some systems name a hard limit that they do not grant.
        log.warning("the limit of %d descriptors stays: %s", soft, error)


def connections_within(wanted: int) -> int:
    """Return how many connections the limit of descriptors bears, at most those wanted."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted + RESERVED:
        return wanted
    most = max(soft - RESERVED, soft // 2)
    log.warning("at most %d connections, since the process may have %d descriptors", most, soft)
    return most
