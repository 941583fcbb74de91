"""A store at a fresh place, and runs and rows to put into it."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from cbench_server.results import EvalRow, Failure
from cbench_server.runs.digests import canonical_digest
from cbench_server.runs.store import SpooledExample
from cbench_server.spec import DatasetRef, Run, RunSpec, RunState, SystemRef
from cbench_server.storage.sql_store import SqlStore
from tests.fixtures.stores import Place


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
async def store(place: Place) -> AsyncIterator[SqlStore]:
    store = place.open()
    yield store
    await store.close()


@pytest.fixture
def make_run() -> Callable[..., Run]:
    def make(run_id: str = "r1", labels: dict[str, str] | None = None, **attributes: Any) -> Run:
        spec = RunSpec(
            systems=(SystemRef(name="a", builtin="identity"), SystemRef(name="b", builtin="x")),
            datasets=(DatasetRef("qa"),),
            labels=labels or {},
            repeats=attributes.pop("repeats", 1),
        )
        values: dict[str, Any] = {"state": RunState.QUEUED, "create_time": 100.0}
        return Run(run_id=run_id, spec=spec, **(values | attributes))

    return make


@pytest.fixture
def make_row() -> Callable[..., EvalRow]:
    def make(ordinal: int = 0, system: str = "a", failed: bool = False, **values: Any) -> EvalRow:
        failure = Failure("system", "TIMEOUT", "too slow") if failed else None
        return EvalRow(
            system=system,
            example_id=ordinal,
            scores={} if failed else {"f1": 0.5},
            input_tokens=3,
            output_tokens=2,
            ordinal=ordinal,
            index=ordinal,
            dataset="qa",
            failure=failure,
            **values,
        )

    return make


@pytest.fixture
def make_example() -> Callable[..., SpooledExample]:
    def make(ordinal: int, **fields: Any) -> SpooledExample:
        example = {"id": ordinal, "context": f"context {ordinal}", **fields}
        digest = canonical_digest(example)
        return SpooledExample(ordinal, "qa", ordinal, example, digest, {"context": 2})

    return make
