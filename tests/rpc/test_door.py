"""The door: what becomes of an error that several calls and runs have met."""

import asyncio

from cbench_server.errors import StoreFull
from cbench_server.rpc.door import let_go


async def test_to_let_go_of_an_error_ends_nobody_who_has_met_the_same() -> None:
    """Writes of one group fail by one error: of a run, which waits, and of calls, which end."""
    full = asyncio.get_running_loop().create_future()

    async def wait_for_space() -> str:
        try:
            await full
        except StoreFull:
            await asyncio.sleep(0.01)
        return "went on"

    async def be_refused() -> None:
        try:
            await full
        except StoreFull as error:
            let_go(error)

    waiting = asyncio.create_task(wait_for_space())
    refused = asyncio.create_task(be_refused())
    await asyncio.sleep(0)
    full.set_exception(StoreFull("no space is left"))
    async with asyncio.timeout(10):
        await refused
        assert await waiting == "went on"
