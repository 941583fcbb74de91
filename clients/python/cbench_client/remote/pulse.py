"""The pulse of another process: whether it still takes connections, when it does not answer.

A process that is stopped, or whose network is gone, looks like one that thinks
for long. Pings would tell, but servers that are not set up for them break off
the connection after the third. A new connection tells as well: its first
bytes come from the server's own threads, not from what it is busy with.
"""

import asyncio
from collections.abc import Callable

import grpc

from cbench_client.remote.channel import Tls, open_channel

SILENCE_SECONDS = 30.0
"""How long calls may be out and none answered until the pulse is felt."""
PATIENCE_SECONDS = 10.0
"""How long a new connection may take."""


class Pulse:
    """Feels the pulse of one target. Belongs to the loop it is made on.

    `is_busy` says whether calls are out; `break_off` has them all fail, once
    nothing was heard for long and no new connection is taken.
    """

    def __init__(
        self,
        target: str,
        tls: Tls | bool | None,
        is_busy: Callable[[], bool],
        break_off: Callable[[], None],
    ) -> None:
        self._target = target
        self._tls = tls
        self._is_busy = is_busy
        self._break_off = break_off
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._checking: asyncio.Task[None] | None = None
        self._feeling: asyncio.Task[bool] | None = None
        self.heard = self._loop.time()
        """When the process last answered."""

    def watch(self) -> None:
        """Watch over the calls that are out, from now until there are none."""
        if self._timer is None:
            self.heard = self._loop.time()
            self._timer = self._loop.call_later(SILENCE_SECONDS, self._look)

    def _look(self) -> None:
        if not self._is_busy():
            self._timer = None
            return
        left = self.heard + SILENCE_SECONDS - self._loop.time()
        if left > 0:
            self._timer = self._loop.call_later(left, self._look)
        else:
            self._checking = self._loop.create_task(self._check())

    async def _check(self) -> None:
        felt_at = self._loop.time()
        if not await self.is_felt() and self.heard < felt_at:
            self._break_off()
        self._timer = self._loop.call_later(SILENCE_SECONDS, self._look)

    async def is_felt(self) -> bool:
        """Tell whether the process takes a new connection; those who ask at once ask together."""
        if self._feeling is None or self._feeling.done():
            self._feeling = self._loop.create_task(self._feel())
        return await asyncio.shield(self._feeling)

    async def _feel(self) -> bool:
        channel = open_channel(self._target, tls=self._tls)
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while True:
                    state = channel.get_state(try_to_connect=True)
                    if state is grpc.ChannelConnectivity.READY:
                        return True
                    if state is grpc.ChannelConnectivity.TRANSIENT_FAILURE:
                        return False
                    await channel.wait_for_state_change(state)
        except TimeoutError:
            return False
        finally:
            await channel.close(None)

    async def stop(self) -> None:
        """Watch no more."""
        if self._timer is not None:
            self._timer.cancel()
        tasks = [task for task in (self._checking, self._feeling) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
