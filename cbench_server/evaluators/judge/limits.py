"""Limits of a judge: how often it is asked, how much at once, and what that may cost."""

import asyncio
import functools
import math
import threading
import time

from cbench_server.errors import InvalidInput
from cbench_server.models.level import Level
from cbench_server.models.prompt_counts import PromptCounts
from cbench_server.scoring.assessment import GaveUp

_MILLION = 1_000_000
_KEPT = 256


class Pace:
    """Spaces requests to one model evenly, from all threads and event loops."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next = 0.0

    async def wait(self, per_minute: float) -> None:
        """Wait for the next turn."""
        if (delay := self.reserve(per_minute, time.monotonic())) > 0:
            await asyncio.sleep(delay)

    def reserve(self, per_minute: float, now: float) -> float:
        """Take the next turn and return the seconds until it comes."""
        with self._lock:
            turn = max(now, self._next)
            self._next = turn + 60.0 / per_minute
        return turn - now


@functools.lru_cache(maxsize=_KEPT)
def pace_of(base_url: str, model: str, rpm: float | None) -> Pace:
    """Return the pace that everyone in this process shares who asks that model as often.

    Those who ask at another pace are not held up by it: a client that wants one request an hour
    would decide for all.
    """
    return Pace()


@functools.lru_cache(maxsize=_KEPT)
def level_of(base_url: str, model: str) -> Level:
    """Return the level of calls in flight that all judges share which ask that model."""
    return Level()


@functools.lru_cache(maxsize=_KEPT)
def counts_of(base_url: str, model: str) -> PromptCounts:
    """Return what that model has reported of prompts to all judges that ask it."""
    return PromptCounts()


class Budget:
    """What calls may cost together, in US dollars; prices are per million tokens.

    A call reserves what it may cost at most, so that calls in flight at the
    same time cannot spend more than the cap between them.
    """

    def __init__(
        self, cap: float | None, input_price: float | None, output_price: float | None
    ) -> None:
        for name, value in (
            ("max_cost", cap),
            ("input_price", input_price),
            ("output_price", output_price),
        ):
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise InvalidInput(f"{name} must be a number from 0 on, not {value}")
        if cap is not None and not (input_price or output_price):
            raise InvalidInput(
                "max_cost needs to know what tokens cost: give input_price and output_price, "
                "in US dollars per million tokens"
            )
        self.cap = cap
        self.spent = 0.0
        self._input_price = input_price or 0.0
        self._output_price = output_price or 0.0
        self._reserved = 0.0
        self._lock = threading.Lock()

    def cost(self, input_tokens: int, output_tokens: int) -> float:
        """Return what so many tokens cost."""
        spent = input_tokens * self._input_price + output_tokens * self._output_price
        return spent / _MILLION

    def reserve(self, cost: float) -> None:
        """Set aside what a call may cost, or raise GaveUp if the cap does not allow it."""
        with self._lock:
            taken = self.spent + self._reserved
            if self.cap is not None and taken + cost > self.cap:
                raise GaveUp(
                    f"cost cap reached: ${taken:.4f} of ${self.cap:g} is spent or set aside, and "
                    f"one more call may cost ${cost:.4f}. Raise max_cost to go on."
                )
            self._reserved += cost

    def settle(self, reserved: float, spent: float) -> None:
        """Put what a call did cost in place of what was set aside for it."""
        with self._lock:
            self._reserved -= reserved
            self.spent += spent
