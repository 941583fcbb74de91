"""Rows with known scores."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from cbench_server.results import EvalRow, Failure

MakeRows = Callable[..., list[EvalRow]]


@pytest.fixture
def make_rows() -> MakeRows:
    """Make a row for each score, the one at place i for example i; None is a failed system."""

    def make(system: str, scores: Sequence[float | None], **columns: Any) -> list[EvalRow]:
        """`columns` hold one value for all rows, or a list with one for each."""
        rows = []
        for place, score in enumerate(scores):
            values: dict[str, Any] = {
                "dataset": "d",
                "primary_score": "" if score is None else "f1",
                "ordinal": place,
                "index": place,
                "failure": Failure("system", "BROKEN", "it broke") if score is None else None,
            }
            for name, column in columns.items():
                values[name] = column[place] if isinstance(column, list) else column
            scored = {} if score is None else {"f1": float(score)}
            rows.append(EvalRow(system, f"e{place}", scored, 100, 50, **values))
        return rows

    return make
