"""Memory systems for end-to-end tests: `python memory_systems.py BEHAVIOUR PORT [ARGUMENT...]`.

`PORT` is where to listen, or `attach:HOST:PORT` of a daemon to dial. Each notes
its calls in a file, if given one.
"""

import asyncio
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from cbench_client import attach, serve

_log: int | None = None


def note(*words: object) -> None:
    """Write a line in one piece, so that nothing is lost in a crash."""
    if _log is not None:
        os.write(_log, (" ".join(map(str, words)) + "\n").encode())


class Notes:
    """Remembers lines, and answers with the line that shares most words with the question."""

    name = "notes"
    version = "1"
    max_concurrency = 8

    def __init__(self, delay: str = "0") -> None:
        self._delay = float(delay)
        self._scopes: dict[str, list[dict[str, Any]]] = {}

    async def reset(self, scope: str) -> None:
        note("reset", scope)
        self._scopes.pop(scope, None)

    async def ingest(self, turns: list[dict[str, Any]], scope: str) -> dict[str, Any]:
        note("ingest", scope, len(turns), ",".join(sorted({key for turn in turns for key in turn})))
        await asyncio.sleep(self._delay)
        kept = self._scopes.setdefault(scope, [])
        kept += turns
        return {"stored_bytes": sum(len(turn["content"]) for turn in kept)}

    async def query(
        self, question: str, scope: str, budget: int | None, asked_at: str | None
    ) -> dict[str, Any]:
        note("query", scope, question.split()[-1], budget, asked_at)
        await asyncio.sleep(self._delay)
        words = set(question.lower().split())
        lines = [turn["content"] for turn in self._scopes.get(scope, [])]
        best = max(lines, key=lambda line: len(words & set(line.lower().split())), default="")
        return {"response": best, "context": "\n".join(lines), "metadata": {"lines": len(lines)}}


class Bare:
    """One object with one state, as most people write it."""

    name = "bare"

    def __init__(self) -> None:
        self._turns: list[dict[str, Any]] = []

    def reset(self) -> None:
        note("reset")
        self._turns = []

    def ingest(self, turns: list[dict[str, Any]]) -> None:
        note("ingest", len(turns))
        self._turns += turns

    def query(self, question: str) -> str:
        note("query", question.split()[-1])
        time.sleep(0.01)
        return " / ".join(turn["content"] for turn in self._turns)


class Retriever(Bare):
    """Likewise, but leaves the answer to a reader."""

    name = "retriever"

    def query(self, question: str) -> Any:
        return {"context": super().query(question)}


class Slow(Bare):
    """One object with one state that takes its time over the first question."""

    name = "slow"

    def query(self, question: str) -> str:
        if question.endswith("q0.0"):
            time.sleep(2)
        return super().query(question)


class Forgetful(Notes):
    """Cannot take in some conversations: one raises, one hangs."""

    name = "forgetful"

    async def ingest(self, turns: list[dict[str, Any]], scope: str) -> dict[str, Any]:
        if "number 1" in turns[0]["content"]:
            raise ValueError("this is too much to remember")
        if "number 2" in turns[0]["content"]:
            await asyncio.sleep(3600)
        return await super().ingest(turns, scope)

    async def query(
        self, question: str, scope: str, budget: int | None, asked_at: str | None
    ) -> dict[str, Any]:
        if question.endswith("q3.1"):
            raise ValueError("this is too hard")
        return await super().query(question, scope, budget, asked_at)


class Hanging(Notes):
    """Hangs in one kind of call, of the first so many conversations."""

    name = "hanging"

    def __init__(self, kind: str, conversations: str = "1000") -> None:
        super().__init__()
        self._kind = kind
        self._conversations = int(conversations)
        self._begun: dict[str, None] = {}

    async def ingest(self, turns: list[dict[str, Any]], scope: str) -> dict[str, Any]:
        self._begun[turns[0]["content"]] = None
        if self._kind == "ingest" and len(self._begun) <= self._conversations:
            await asyncio.sleep(3600)
        return await super().ingest(turns, scope)

    async def query(
        self, question: str, scope: str, budget: int | None, asked_at: str | None
    ) -> dict[str, Any]:
        if self._kind == "query":
            await asyncio.sleep(3600)
        return await super().query(question, scope, budget, asked_at)


class Deadly(Bare):
    """One object with one state that dies of one question, or of one conversation."""

    name = "deadly"

    def __init__(self, deadly: str = "") -> None:
        super().__init__()
        self._deadly = deadly

    def ingest(self, turns: list[dict[str, Any]]) -> None:
        if any(turn["content"].startswith(f"in chat {self._deadly} ") for turn in turns):
            note("died")
            os._exit(1)
        super().ingest(turns)

    def query(self, question: str) -> str:
        if question.endswith(self._deadly):
            note("died")
            os._exit(1)
        return super().query(question)


KINDS: dict[str, Callable[..., Any]] = {
    kind.name: kind for kind in (Notes, Bare, Retriever, Slow, Forgetful, Hanging, Deadly)
}

if __name__ == "__main__":
    behaviour, where, *arguments = sys.argv[1:]
    if arguments and arguments[0]:
        _log = os.open(arguments[0], os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    system = KINDS[behaviour](*arguments[1:])
    if where.startswith("attach:"):
        attach(server=where.removeprefix("attach:"), memory_systems=[system])
    else:
        os.environ["CBENCH_HANDSHAKE"] = "1"
        serve(address=f"127.0.0.1:{where}", memory_systems=[system])
