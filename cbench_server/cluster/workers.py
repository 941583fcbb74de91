"""Workers of a Ray cluster, for the daemon: pairs go to a driver program, and come back scored."""

import asyncio
import contextlib
import itertools
import logging
import sys
import time

import msgspec

from cbench_server.cluster.joining import variables
from cbench_server.cluster.messages import Asked, News, Settings, Told
from cbench_server.errors import ComponentAway, ShuttingDown
from cbench_server.lazy_imports import require
from cbench_server.scoring.assessment import Unscorable
from cbench_server.scoring.incidents import scored_again
from cbench_server.scoring.programs import MAX_BODY, environment, header, read_frame
from cbench_server.scoring.recipe import Recipe
from cbench_server.scoring.shares import FairPermits
from cbench_server.scoring.workers import assessment_of, request_of
from cbench_server.types import Assessment, Example

_log = logging.getLogger(__name__)

_COMMAND = (sys.executable, "-P", "-m", "cbench_server.cluster.driver")
# Enough for two batches on each of many CPUs; those of one client do not keep others out.
_AT_ONCE = 4096
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 30.0
LOST = "a node or a scorer of the Ray cluster was lost"


class ClusterWorkers:
    """Scores pairs on the nodes of a Ray cluster. Belongs to one event loop.

    Args:
        address: `local` for a cluster of this machine's own, `auto` for the one that runs here,
            or HOST:PORT.
        most_seats: Actors in all; 0 means one for each CPU that the cluster offers.
        policy: How programs under test are locked in, at least.

    Raises InvalidInput where Ray is not installed.
    """

    takes_programs = True
    at_once = 512

    def __init__(
        self, address: str, most_seats: int = 0, *, policy: str, call_timeout: float = 60.0
    ) -> None:
        require("ray", "The engine ray needs")
        self._settings = Settings(address, most_seats, call_timeout, policy)
        self._numbers = itertools.count()
        self._asked: dict[int, asyncio.Future[Told]] = {}
        self._permits = FairPermits(_AT_ONCE)
        self._process: asyncio.subprocess.Process | None = None
        self._following: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._pause, self._not_before = _FIRST_PAUSE_S, 0.0
        self._last_words = ""
        self._closed = False
        self.news = News(0, 0)
        self._changed = asyncio.Event()

    async def start(self) -> None:
        """Join the cluster, unless that is done."""
        async with self._starting:
            if self._closed:
                raise ShuttingDown("the scorers of the cluster are given up")
            if self._process is not None:
                return
            if time.monotonic() < self._not_before:
                raise ComponentAway(self._last_words, was_asked=False)
            self._process = await asyncio.create_subprocess_exec(
                *_COMMAND,
                msgspec.json.encode(self._settings).decode(),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=environment() | variables(self._settings.address),
                start_new_session=True,
                limit=MAX_BODY,
            )
            self._following = asyncio.create_task(self._follow(self._process))

    async def ready(self, seats: int = 1) -> None:
        """Wait until so many scorers are there, with a sandbox each."""
        await self.start()
        while self.news.sandboxed < seats:
            self._changed.clear()
            await self._changed.wait()

    async def assess(self, recipe: Recipe, original: Example, processed: Example) -> Assessment:
        """Apply an evaluator on some node."""
        name = recipe.evaluator
        request = request_of(recipe, original, processed, self._settings.call_timeout)
        async with self._permits.one():
            told = await self._ask(Asked(0, name, recipe.runs_programs, request))
        if told.repeats:
            scored_again(LOST)
        if told.scored is None:
            raise ComponentAway(told.away, was_asked=False)
        if told.scored.unscorable:
            raise Unscorable(told.scored.unscorable)
        return assessment_of(name, told.scored.reply)

    async def close(self) -> None:
        """Leave the cluster, which ends the actors there."""
        async with self._starting:
            self._closed = True
            process, following = self._process, self._following
        if process is not None and following is not None:
            assert process.stdin is not None
            process.stdin.close()
            try:
                async with asyncio.timeout(10.0):
                    await process.wait()
            except TimeoutError:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
            await following

    async def _ask(self, asked: Asked) -> Told:
        await self.start()
        assert self._process is not None
        assert self._process.stdin is not None
        asked.number = next(self._numbers)
        reply = self._asked[asked.number] = asyncio.get_running_loop().create_future()
        try:
            body = msgspec.msgpack.encode(asked)
            self._process.stdin.write(header(body) + body)
            with contextlib.suppress(OSError):
                # Where the driver is gone, whoever follows it says so.
                await self._process.stdin.drain()
            told: Told = await reply
            return told
        finally:
            self._asked.pop(asked.number, None)

    async def _follow(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        talking = asyncio.create_task(self._log_output(process))
        try:
            while True:
                frame = await read_frame(process.stdout)
                self._hear(msgspec.msgpack.decode(frame, type=Told | News))
        except asyncio.IncompleteReadError:
            pass
        await talking
        self._gone(await process.wait())

    def _hear(self, said: Told | News) -> None:
        if isinstance(said, News):
            self._pause = _FIRST_PAUSE_S
            self.news = said
            self._changed.set()
            about = {"seats": said.seats, "sandboxed": said.sandboxed}
            if said.said:
                _log.warning("ray: %s", said.said, extra=about)
            else:
                _log.info("ray: scorers ready", extra=about)
            return
        reply = self._asked.get(said.number)
        if reply is not None and not reply.done():
            reply.set_result(said)

    async def _log_output(self, process: asyncio.subprocess.Process) -> None:
        """Keep the log one object per line, whatever Ray prints."""
        assert process.stderr is not None
        async for line in process.stderr:
            text = line.decode("utf-8", "replace").strip()
            if text:
                self._last_words = text[:300]
                _log.debug("ray: %s", text)

    def _gone(self, code: int) -> None:
        self._process = None
        self.news = News(0, 0)
        self._not_before = time.monotonic() + self._pause
        self._pause = min(self._pause * 2, _LONGEST_PAUSE_S)
        where = self._settings.address
        self._last_words = f"the Ray cluster at {where} cannot be reached: {self._last_words}"
        if not self._closed:
            _log.warning("ray: %s", self._last_words, extra={"code": code})
        for number, reply in self._asked.items():
            if not reply.done():
                reply.set_result(Told(number, away=self._last_words))
