"""Requests about one run are dealt with one at a time, those about another beside them."""

import asyncio

from cbench_server.runs.desks import Desks


async def test_who_comes_while_the_desk_changes_hands_waits_too() -> None:
    desks, present, most = Desks(), 0, 0

    async def stay(rounds: int) -> None:
        nonlocal present, most
        async with desks.at("run"):
            present += 1
            most = max(most, present)
            for _ in range(rounds):
                await asyncio.sleep(0)
            present -= 1

    async def come_late(rounds: int) -> None:
        for _ in range(rounds):
            await asyncio.sleep(0)
        await stay(5)

    await asyncio.gather(stay(3), stay(5), *(come_late(each) for each in range(12)))
    assert most == 1


async def test_another_run_has_its_own_desk() -> None:
    desks = Desks()
    async with asyncio.timeout(5), desks.at("one"), desks.at("other"):
        pass
