"""Strangers: calls without a token to what is open to all, a bounded number of them at a time."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cbench_server.errors import LimitReached

MAX_STRANGERS = 256
"""Calls without a token that are served at once: health checks."""


class Strangers:
    """Keeps the newest calls; the oldest gives way, so that no one can keep others out."""

    def __init__(self, limit: int = MAX_STRANGERS) -> None:
        self._limit = limit
        self._inside: dict[asyncio.Task[Any], None] = {}
        self._ousted: set[asyncio.Task[Any]] = set()

    @contextmanager
    def place(self) -> Iterator[None]:
        """Hold a place for the block, unless so many come later that it is needed."""
        task = asyncio.current_task()
        assert task is not None
        if len(self._inside) >= self._limit:
            oldest = next(iter(self._inside))
            del self._inside[oldest]
            self._ousted.add(oldest)
            oldest.cancel()
        self._inside[task] = None
        try:
            yield
        except asyncio.CancelledError:
            if task not in self._ousted:
                raise
            task.uncancel()
            raise LimitReached(
                f"{self._limit} calls without a token came later, the most this daemon serves at "
                "once. Call again, or with a token."
            ) from None
        finally:
            self._inside.pop(task, None)
            self._ousted.discard(task)
