"""Shares of scoring workers: who asks for much does not keep others waiting for all of it."""

import asyncio

from cbench_server.scoring.shares import SHARE, FairPermits


async def _use(permits: FairPermits, who: str, order: list[str], held: asyncio.Event) -> None:
    SHARE.set(who)
    async with permits.one():
        order.append(who)
        await held.wait()


async def test_a_free_permit_goes_to_who_holds_fewest() -> None:
    permits, order = FairPermits(2), []
    gates = [asyncio.Event() for _ in range(12)]
    names = ["greedy"] * 10 + ["modest"] * 2
    tasks = []
    for name, gate in zip(names, gates, strict=True):
        tasks.append(asyncio.create_task(_use(permits, name, order, gate)))
        await asyncio.sleep(0)
    assert order == ["greedy", "greedy"]
    gates[0].set()
    await tasks[0]
    await asyncio.sleep(0)
    # Eight of the greedy one have waited for longer.
    assert order[2] == "modest"
    for gate in gates:
        gate.set()
    await asyncio.gather(*tasks)
    assert sorted(order) == sorted(names)


async def test_nobody_holds_all_permits_for_as_long_as_it_likes() -> None:
    permits, order = FairPermits(2, spare=1), []
    endless, brief = asyncio.Event(), asyncio.Event()
    tasks = []
    for name in ["greedy"] * 4 + ["modest", "late"]:
        tasks.append(
            asyncio.create_task(_use(permits, name, order, endless if name == "greedy" else brief))
        )
        await asyncio.sleep(0)
    # The spare one is for one who holds none, and for one at a time.
    assert order == ["greedy", "greedy", "modest"]
    brief.set()
    async with asyncio.timeout(30):
        await asyncio.gather(*tasks[4:])
    assert order == ["greedy", "greedy", "modest", "late"]
    endless.set()
    async with asyncio.timeout(30):
        await asyncio.gather(*tasks)
    assert len(order) == 6


async def test_who_gives_up_waiting_takes_no_permit_along() -> None:
    permits, order = FairPermits(1), []
    gates = {name: asyncio.Event() for name in "abc"}
    tasks = {}
    for name, gate in gates.items():
        tasks[name] = asyncio.create_task(_use(permits, name, order, gate))
        await asyncio.sleep(0)
    tasks["b"].cancel()
    gates["a"].set()
    # Given up in the moment in which it is served.
    await tasks["a"]
    tasks["c"].cancel()
    await asyncio.gather(*tasks.values(), return_exceptions=True)
    gate = asyncio.Event()
    gate.set()
    async with asyncio.timeout(30):
        await _use(permits, "d", order, gate)
    assert order[-1] == "d"
