"""The systems whose answers stand in the kept store; a test attaches them again."""

from collections.abc import Callable, Sequence
from typing import Any

from cbench_server import evaluate
from cbench_server.evaluators import AnswerQuality
from cbench_server.results import EvalRow


def _nothing() -> None: ...


class Keeper:
    """Keeps the first words, and cannot process one of the examples."""

    name = "keeper"
    version = "3"

    def __init__(self, before: Callable[[], None] = _nothing) -> None:
        self._before = before

    def process(self, example: dict[str, Any], words: int = 5) -> dict[str, Any]:
        self._before()
        if example["id"] == "e7":
            raise ValueError("seven is too many")
        context = " ".join(example["context"].split()[:words])
        if example["id"] == "e8":
            return {**example, "context": context}
        return {**example, "context": context, "response": context.split()[-1].rstrip(".")}


class Notebook:
    """Answers with all lines that it remembers."""

    name = "notebook"
    version = "1"

    def __init__(self, before: Callable[[], None] = _nothing) -> None:
        self._before = before
        self._lines: dict[str, list[str]] = {}

    def reset(self, scope: str) -> None:
        self._lines.pop(scope, None)

    def ingest(self, turns: list[dict[str, Any]], scope: str) -> dict[str, Any]:
        lines = self._lines.setdefault(scope, [])
        lines += [turn["content"] for turn in turns]
        return {"stored_bytes": sum(map(len, lines))}

    def query(self, question: str, scope: str, budget: int | None = None) -> dict[str, Any]:
        self._before()
        lines = self._lines[scope]
        asked = question.split()[-1].rstrip("?")
        answer = next((line for line in lines if asked in line), "")
        return {"response": answer, "context": "\n".join(lines), "metadata": {"lines": len(lines)}}


class CachedSystem:
    """Repeats the question."""

    name = "cached"
    version = "1"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return {**example, "response": example["question"]}


def cached_rows(
    system: Any, examples: Sequence[dict[str, Any]], folder: str | None
) -> list[EvalRow]:
    """Evaluate with a cache."""
    result = evaluate([system], examples, [AnswerQuality()], cache_dir=folder, progress=False)
    return result.rows
