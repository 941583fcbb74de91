"""The memory system that PROGRAM.md describes."""

from collections import defaultdict
from typing import Any

from probe import conformance_panic, hold

from cbench_client import RemoteFailure, current_call

_TURN = ("role", "content", "speaker", "time", "session")


class Memory:
    """Remembers turns."""

    name, version, max_concurrency = "conformance-memory", "1.0", 16

    def __init__(self) -> None:
        self._turns: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        self._ingests: defaultdict[str, int] = defaultdict(int)

    async def reset(self, scope: str) -> None:
        self._turns.pop(scope, None)
        self._ingests.pop(scope, None)

    async def ingest(self, turns: list[dict[str, Any]], scope: str) -> dict[str, Any]:
        for turn in turns:
            await _obey(turn["content"])
        self._turns[scope] += turns
        self._ingests[scope] += 1
        return {"usage": {"prompt_tokens": len(turns)}, "stored_bytes": self._bytes(scope)}

    async def query(
        self,
        question: str,
        scope: str,
        budget: int | None,
        asked_at: str | None,
        instruction: str,
    ) -> dict[str, Any]:
        await _obey(question)
        turns, call = self._turns[scope], current_call()
        return {
            "response": str(len(turns)),
            "context": "\n".join(turn["content"] for turn in turns),
            "context_tokens": len(turns),
            "stored_bytes": self._bytes(scope),
            "retrieval_seconds": 0.25,
            "usage": {"prompt_tokens": 3},
            "metadata": {
                "ingests": self._ingests[scope],
                "question": question,
                "budget": budget,
                "asked_at": asked_at,
                "instruction": instruction,
                "traceparent": call.traceparent,
                "tracestate": call.tracestate,
                "last": _as_map(turns[-1]) if turns else None,
            },
        }

    def _bytes(self, scope: str) -> int:
        return sum(len(turn["content"].encode()) for turn in self._turns[scope])


async def _obey(text: str) -> None:
    if text == "fail":
        raise RemoteFailure("told to fail", reason="CONFORMANCE")
    if text == "panic":
        conformance_panic("told to panic")
    if text.startswith("hold:"):
        await hold(text.removeprefix("hold:"))


def _as_map(turn: dict[str, Any]) -> dict[str, Any]:
    fields = {name: value for name, value in turn.items() if name not in _TURN}
    return {name: turn.get(name) for name in _TURN} | {"fields": fields}
