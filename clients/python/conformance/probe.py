"""What happened under each key, and the piece of user code that waits to be released."""

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field


@dataclass
class Counters:
    """What happened under one key."""

    started: int = 0
    running: int = 0
    most: int = 0
    ended: int = 0
    cancelled: int = 0
    released: asyncio.Event = field(default_factory=asyncio.Event)


counters: defaultdict[str, Counters] = defaultdict(Counters)


async def hold(key: str, milliseconds: int = 60_000) -> str:
    """Wait until the key is released, or the time is up, or nobody waits any more."""
    seen = counters[key]
    seen.started += 1
    seen.running += 1
    seen.most = max(seen.most, seen.running)
    try:
        await asyncio.wait_for(seen.released.wait(), milliseconds / 1e3)
    except TimeoutError:
        return "elapsed"
    except asyncio.CancelledError:
        seen.cancelled += 1
        raise
    finally:
        seen.running -= 1
        seen.ended += 1
    return "released"


def conformance_panic(message: str) -> None:
    """Break in a function whose name the stack trace must show."""
    raise RuntimeError(message)
