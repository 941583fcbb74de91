"""A module for --import: registers an evaluator and a metric."""

from collections.abc import Mapping, Sequence
from typing import Any

from cbench_server.registry import register_evaluator, register_metric
from cbench_server.results import EvalRow


class Length:
    """Gives `length`, the characters of the context."""

    name = "length"

    def score(self, original: Mapping[str, Any], processed: Mapping[str, Any]) -> dict[str, float]:
        return {"length": float(len(processed["context"]))}


class Longest:
    """Gives `longest`, the greatest `length`."""

    name = "longest"

    def compute(self, rows: Sequence[EvalRow]) -> dict[str, float]:
        return {"longest": max(row.scores["length"] for row in rows)}


class Careless:
    """Gives what is no number."""

    name = "careless"

    def compute(self, rows: Sequence[EvalRow]) -> dict[str, Any]:
        return {"verdict": "fine", "rows": [len(rows)]}


register_evaluator("length", Length)
register_metric("careless", Careless)
register_metric("longest", Longest)
