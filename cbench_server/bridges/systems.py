"""Systems and memory systems that are somewhere behind an exchange of JSON."""

import asyncio
import sys
from collections.abc import Mapping
from typing import Any

from cbench_client import RemoteFailure
from cbench_server.bridges.exchange import Exchange, Message

# What is over sooner is nobody's concern.
_TROUBLE_S = 2.0


class _Bridged:
    """What is known of a system before it is asked."""

    def __init__(
        self,
        exchange: Exchange,
        name: str,
        version: str = "",
        description: str = "",
        max_concurrency: int | None = None,
    ) -> None:
        self.name = name
        self.version = version
        self.description = description
        self.max_concurrency = max_concurrency
        self._exchange = exchange
        self._telling: asyncio.TimerHandle | None = None
        self._told: set[str] = set()

    async def _ask(self, request: Message) -> Message:
        """Have a request answered; tell of failures that are tried again, if nothing else comes."""
        try:
            answer = await self._exchange.ask(request)
        except RemoteFailure as error:
            if error.retryable and self._telling is None:
                loop = asyncio.get_running_loop()
                self._telling = loop.call_later(_TROUBLE_S, self._tell, error)
            raise
        if self._telling is not None:
            self._telling.cancel()
            self._telling = None
        return answer

    def _tell(self, error: RemoteFailure) -> None:
        self._telling = None
        if error.reason not in self._told:
            self._told.add(error.reason)
            print(
                f"{error}; requests are sent again until the time of their row (--timeout) is over",
                file=sys.stderr,
                flush=True,
            )


class BridgedSystem(_Bridged):
    """A system that is asked in JSON."""

    async def process(
        self,
        example: Mapping[str, Any],
        options: Mapping[str, Any] | None = None,
        instruction: str = "",
    ) -> Message:
        """Have an example transformed."""
        answer = await self._ask(
            {
                "method": "process",
                "example": dict(example),
                "options": dict(options or {}),
                "instruction": instruction,
            }
        )
        processed = answer.get("example")
        if not isinstance(processed, dict):
            raise RemoteFailure(
                'an answer has the example as the system leaves it, {"id": ..., "example": '
                f'{{...}}}}, or an "error"; this one has: {", ".join(answer) or "nothing"}',
                reason="BAD_RETURN",
            )
        return processed


class BridgedMemory(_Bridged):
    """A memory system that is asked in JSON; it keeps scopes apart by their names."""

    async def reset(self, scope: str) -> None:
        """Have a scope forgotten."""
        await self._ask({"method": "reset", "scope": scope})

    async def ingest(self, turns: list[dict[str, Any]], scope: str) -> Message:
        """Have turns remembered."""
        return await self._ask({"method": "ingest", "scope": scope, "turns": turns})

    async def query(
        self,
        question: str,
        scope: str,
        budget: int | None,
        asked_at: str | None,
        instruction: str,
    ) -> Message:
        """Have a question answered."""
        return await self._ask(
            {
                "method": "query",
                "scope": scope,
                "question": question,
                "budget": budget,
                "asked_at": asked_at,
                "instruction": instruction,
            }
        )
