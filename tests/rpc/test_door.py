"""The door: what becomes of an error that calls and runs have met together."""

import asyncio

from cbench_server.errors import StoreFull
from cbench_server.rpc.door import let_go


async def test_to_let_go_of_an_error_ends_nobody_who_has_met_the_same() -> None:
    """Writes of one group fail by one error: of a run, which waits, and of calls, which end."""
    loop = asyncio.get_running_loop()
    of_run, of_call = loop.create_future(), loop.create_future()

    async def written(group: "asyncio.Future[None]") -> None:
        await group

    async def wait_for_space() -> str:
        try:
            await written(of_run)
        except StoreFull:
            await asyncio.sleep(0.05)
        return "went on"

    async def be_refused() -> None:
        try:
            # As requests are carried out, though their clients leave.
            await asyncio.shield(asyncio.create_task(written(of_call)))
        except StoreFull as error:
            let_go(error)

    waiting, refused = asyncio.create_task(wait_for_space()), asyncio.create_task(be_refused())
    await asyncio.sleep(0)
    full = StoreFull("no space is left")
    of_run.set_exception(full)
    of_call.set_exception(full)
    await refused
    done, _ = await asyncio.wait([waiting], timeout=10)
    assert [each.result() for each in done] == ["went on"]
