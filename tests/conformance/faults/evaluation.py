"""Faults of evaluators."""

import random
from typing import Any

from faults.registry import fault

from cbench_client.host import adapters


@fault
def evaluators_lie() -> None:
    async def lie(self: Any, request: Any, reply: Any) -> None:
        reply.scores["lie"] = random.random()

    adapters.EvaluatorAdapter.score = lie
