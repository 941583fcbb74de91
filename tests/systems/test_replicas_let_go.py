"""What becomes of calls to replicas that a run has let go of, such as one that lost its lease."""

import asyncio
import gc
from typing import Any

from cbench_server.registry import Registry, shipped_and_installed
from cbench_server.rpc.attachments import Attachments
from cbench_server.rpc.credentials import Credentials
from cbench_server.rpc.evaluator_factory import EvaluatorMaker
from cbench_server.rpc.finder import Finder
from cbench_server.spec import SystemRef
from cbench_server.systems.caller import Call, Process
from tests.e2e.test_replicas import start_replica


async def _call_after_close(first: str, second: str) -> tuple[list[Any], list[Any]]:
    """Return how the calls ended, and what nobody caught."""
    uncaught: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: uncaught.append(context))
    registry, credentials = Registry(shipped_and_installed), Credentials({}, "")
    finder = Finder(registry, Attachments(), credentials, EvaluatorMaker(registry, credentials))
    (caller,) = await finder.find_systems(SystemRef(target=first, replicas=(second,)), "process")
    assert caller.replicas is not None
    caller.replicas.begin(lambda _: 2, lambda _: None, is_fixed=True)
    await caller.close()
    ended: list[Any] = []
    calls = [Call(f"c{number}", Process({"id": number, "question": "?"})) for number in range(4)]
    caller.start_many(calls, 60.0, ended.extend, lambda *failed: ended.append(failed))
    async with asyncio.timeout(30):
        while len(ended) < len(calls):
            await asyncio.sleep(0.01)
    # What was begun has its turns, and is collected with its exception.
    for _ in range(20):
        await asyncio.sleep(0.01)
    gc.collect()
    return ended, uncaught


def test_calls_end_and_nobody_is_looked_for() -> None:
    with start_replica() as one, start_replica() as other:
        ended, uncaught = asyncio.run(_call_after_close(one.address, other.address))
    assert len(ended) == 4
    assert [str(each) for each in uncaught] == []
