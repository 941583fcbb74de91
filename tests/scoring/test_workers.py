"""Worker programs: what they cost, and what happens to those that misbehave."""

import asyncio
import importlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cbench_server.errors import EvaluatorBroken, ShuttingDown, Unencodable
from cbench_server.evaluators import AnswerQuality
from cbench_server.scoring.assessment import CannotRebuild
from cbench_server.scoring.recipe import Recipe, recipe_of
from cbench_server.scoring.workers import WorkerPool
from cbench_server.types import Assessment, Evaluator

_DEADLINE_S = 60


@pytest.fixture
def trouble(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    return importlib.import_module("troublesome_evaluators")


@pytest.fixture
async def pool() -> AsyncIterator[WorkerPool]:
    pool = WorkerPool(size=2)
    yield pool
    await pool.close()


def recipe(evaluator: Evaluator) -> Recipe:
    found = recipe_of(evaluator)
    assert found is not None
    return found


async def score(pool: WorkerPool, evaluator: Evaluator) -> Assessment:
    return await pool.assess(recipe(evaluator), {"context": "c"}, {"response": "r"})


def pids(folder: Path) -> list[int]:
    return [int(path.read_text()) for path in folder.glob("pid-*") if not path.suffix]


def is_running(pid: int) -> bool:
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return shown.stdout.strip()[:1] not in ("", "Z")


async def wait_until(condition: Any) -> None:
    deadline = time.monotonic() + _DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, "the condition never came true"
        await asyncio.sleep(0.01)


async def test_a_worker_gives_the_scores_that_the_import_gives(pool: WorkerPool) -> None:
    original, processed = {"answers": ["Paris", "the city"]}, {"response": "It is Paris, a city."}
    evaluator = AnswerQuality(strip_thinking=False)

    assessment = await pool.assess(recipe(evaluator), original, processed)

    assert assessment.scores == evaluator.score(original, processed)


async def test_options_reach_the_worker(pool: WorkerPool) -> None:
    pair = {"answer": "yes"}, {"response": "<think>yes</think>no"}
    kept = await pool.assess(recipe(AnswerQuality(strip_thinking=False)), *pair)
    stripped = await pool.assess(recipe(AnswerQuality()), *pair)
    assert (kept.scores["contains"], stripped.scores["contains"]) == (1.0, 0.0)


async def test_assess_is_preferred_and_its_details_come_back(
    pool: WorkerPool, trouble: Any
) -> None:
    assessment = await score(pool, trouble.Explains())
    assert assessment.scores == {"ok": 1.0}
    assert assessment.details["pid"] != os.getpid()


async def test_secrets_of_the_environment_stay_behind(
    trouble: Any, monkeypatch: pytest.MonkeyPatch, pool: WorkerPool
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    assert (await score(pool, trouble.Explains())).details["key"] == ""


async def test_an_idle_worker_is_used_again(pool: WorkerPool, trouble: Any) -> None:
    first = await score(pool, trouble.Explains())
    second = await score(pool, trouble.Explains())
    assert first.details["pid"] == second.details["pid"]


async def test_no_more_workers_are_started_than_the_pool_may_have(
    pool: WorkerPool, trouble: Any
) -> None:
    assessments = await asyncio.gather(*(score(pool, trouble.Explains()) for _ in range(20)))
    assert 1 <= len({assessment.details["pid"] for assessment in assessments}) <= 2


async def test_printing_and_reading_do_not_disturb_the_pipes(
    pool: WorkerPool, trouble: Any
) -> None:
    for _ in range(3):
        assert (await score(pool, trouble.Chatty())).scores == {"read": 0.0}


async def test_what_an_evaluator_raises_is_told_with_its_place(
    pool: WorkerPool, trouble: Any
) -> None:
    with pytest.raises(EvaluatorBroken, match="KeyError: 'missing'") as caught:
        await score(pool, trouble.Raises())
    assert "troublesome_evaluators.py" in str(caught.value.__cause__)


async def test_an_evaluator_that_wants_all_memory_is_refused_it_and_others_go_on(
    pool: WorkerPool, trouble: Any, tmp_path: Path
) -> None:
    with pytest.raises(EvaluatorBroken, match="MemoryError"):
        await score(pool, trouble.TakesTenGigabytes(str(tmp_path)))
    assert (await score(pool, trouble.Chatty())).scores == {"read": 0.0}


async def test_a_worker_killed_in_the_middle_costs_one_retry(
    pool: WorkerPool, trouble: Any, tmp_path: Path
) -> None:
    scoring = asyncio.create_task(score(pool, trouble.HangsAtFirst(str(tmp_path))))
    await wait_until(lambda: pids(tmp_path))
    os.kill(pids(tmp_path)[0], signal.SIGKILL)
    assert (await scoring).scores == {"attempt": 2.0}


async def test_a_worker_that_exits_costs_one_retry(
    pool: WorkerPool, trouble: Any, tmp_path: Path
) -> None:
    assert (await score(pool, trouble.DiesAtFirst(str(tmp_path)))).scores == {"attempt": 2.0}


async def test_a_request_that_kills_two_workers_is_given_up_and_the_pool_goes_on(
    pool: WorkerPool, trouble: Any, tmp_path: Path
) -> None:
    with pytest.raises(EvaluatorBroken, match='"always-dies" lost two workers: one died'):
        await score(pool, trouble.AlwaysDies(str(tmp_path)))
    assert len(pids(tmp_path)) == 2
    assert (await score(pool, trouble.Explains())).scores == {"ok": 1.0}


async def test_stuck_workers_are_killed_with_all_they_started(trouble: Any, tmp_path: Path) -> None:
    pool = WorkerPool(size=3, call_timeout=3)
    kinds = (trouble.AlwaysHangs, trouble.HoldsTheInterpreter, trouble.LeavesAChild)
    outcomes = await asyncio.gather(
        *(score(pool, kind(str(tmp_path))) for kind in kinds), return_exceptions=True
    )
    for outcome in outcomes:
        assert isinstance(outcome, EvaluatorBroken)
        assert "did not answer within 3 s" in str(outcome)
    started = pids(tmp_path)
    assert len(started) > 2 * len(kinds), "two workers each, and the children of one"
    await wait_until(lambda: not any(map(is_running, started)))
    await pool.close()


async def test_an_idle_worker_that_died_is_replaced(pool: WorkerPool, trouble: Any) -> None:
    first = (await score(pool, trouble.Explains())).details["pid"]
    os.kill(first, signal.SIGKILL)
    second = (await score(pool, trouble.Explains())).details["pid"]
    assert second != first


async def test_a_cancelled_call_does_not_answer_the_next(
    pool: WorkerPool, trouble: Any, tmp_path: Path
) -> None:
    call = asyncio.create_task(score(pool, trouble.AlwaysHangs(str(tmp_path))))
    await wait_until(lambda: pids(tmp_path))
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert (await score(pool, trouble.Explains())).scores == {"ok": 1.0}
    await wait_until(lambda: not is_running(pids(tmp_path)[0]))


async def test_closing_leaves_no_process_and_refuses_who_waits(
    trouble: Any, tmp_path: Path
) -> None:
    pool = WorkerPool(size=1)
    busy = asyncio.create_task(score(pool, trouble.AlwaysHangs(str(tmp_path))))
    await wait_until(lambda: pids(tmp_path))
    queued = asyncio.create_task(score(pool, trouble.Explains()))

    await pool.close()

    assert not any(map(is_running, pids(tmp_path)))
    for call in (busy, queued):
        with pytest.raises(ShuttingDown):
            await call


@pytest.mark.parametrize(
    "value", [2**70, object(), "x" * (128 * 1024 * 1024)], ids=["int", "object", "huge"]
)
async def test_a_pair_that_cannot_be_sent_is_refused(pool: WorkerPool, value: object) -> None:
    with pytest.raises(Unencodable, match="cannot be sent to a worker"):
        await pool.assess(recipe(AnswerQuality()), {"answer": "a"}, {"response": value})


async def test_a_large_pair_goes_through(pool: WorkerPool) -> None:
    text = "word " * 2_000_000
    assessment = await pool.assess(recipe(AnswerQuality()), {"answer": text}, {"response": text})
    assert assessment.scores["exact_match"] == 1.0


async def test_an_evaluator_the_worker_cannot_import_is_named(pool: WorkerPool) -> None:
    with pytest.raises(CannotRebuild, match=r'"odd" cannot be rebuilt.*no_such_module'):
        await pool.assess(Recipe("odd", "no_such_module", "Odd", b"\x80"), {}, {})


@pytest.mark.parametrize("kind", ["AlwaysHangs", "LeavesAChild"])
async def test_no_worker_outlives_a_killed_parent(kind: str, trouble: Any, tmp_path: Path) -> None:
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _PARENT, kind, str(tmp_path), env=_env()
    )
    expected = 2 if kind == "LeavesAChild" else 1
    await wait_until(lambda: len(pids(tmp_path)) == expected)

    parent.kill()
    await parent.wait()

    await wait_until(lambda: not any(map(is_running, pids(tmp_path))))


_PARENT = """
import asyncio, sys
import troublesome_evaluators
from cbench_server.scoring.recipe import recipe_of
from cbench_server.scoring.workers import WorkerPool
evaluator = getattr(troublesome_evaluators, sys.argv[1])(sys.argv[2])
asyncio.run(WorkerPool().assess(recipe_of(evaluator), {}, {}))
"""


def _env() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def test_recipes_are_only_given_for_what_can_be_made_again(trouble: Any) -> None:
    class Local:
        name = "local"

        def score(self, original: Any, processed: Any) -> dict[str, float]:
            return {}

    changed = trouble.Raises()
    changed.level = 3
    assert recipe_of(trouble.Raises()) is not None
    assert recipe_of(changed) is None
    assert recipe_of(Local()) is None


async def test_the_time_that_a_worker_takes_to_start_is_not_the_evaluators(tmp_path: Path) -> None:
    slow = tmp_path / "python"
    slow.write_text(f'#!/bin/sh\nsleep 12\nexec {sys.executable} "$@"\n')
    slow.chmod(0o700)
    pool = WorkerPool(size=1, call_timeout=10, python=str(slow))
    try:
        made = await pool.assess(recipe(AnswerQuality()), {"answer": "a"}, {"response": "a"})
    finally:
        await pool.close()
    assert made.scores == AnswerQuality().score({"answer": "a"}, {"response": "a"})
