"""Attachments: Python objects offered to a daemon that cannot dial this process."""

import asyncio
from collections.abc import Iterable
from concurrent.futures import Future

from cbench_client.errors import NotServable, Refused
from cbench_client.host.background import GRACE_S, LoopThread, ending_on_signals, wait_until_done
from cbench_client.host.host import host_for
from cbench_client.host.limits import QUEUE_FACTOR
from cbench_client.host.link import Link
from cbench_client.host.servable import Servable, Servables
from cbench_client.remote.channel import Tls, check_token
from cbench_client.remote.daemons import addresses_of

_MAX_IN_FLIGHT = 256


class Attachment:
    """An attachment in its own thread, renewed whenever it breaks.

    Args:
        systems: One object, or several of any kind, told apart by their methods.
        server: Where the daemon listens. Several daemons of one store are named with
            commas, `host:a,host:b`: it is attached to all of them.
        max_in_flight: Calls the daemon may have outstanding here at once; by
            default as many as the objects run.
        tls: `True`, or `Tls(...)` for certificates of your own.
        token: The bearer token the daemon wants.
    """

    def __init__(
        self,
        systems: Servables = (),
        server: str = "127.0.0.1:50051",
        *,
        memory_systems: Iterable[Servable] = (),
        evaluators: Iterable[Servable] = (),
        max_concurrency: int | None = None,
        max_in_flight: int | None = None,
        tls: Tls | bool | None = None,
        token: str | None = None,
    ) -> None:
        servers = addresses_of(server)
        for each in servers:
            check_token(each, tls, token)
        self.server = server
        self._host = host_for(systems, memory_systems, evaluators, max_concurrency)
        if max_in_flight is not None and max_in_flight < 1:
            raise NotServable(f"max_in_flight is {max_in_flight}; it must be at least 1.")
        # Never more than run and wait here, or the daemon would be refused.
        most = max(1, self._host.total_limit * (1 + QUEUE_FACTOR) // len(servers))
        limit = min(max_in_flight or min(self._host.total_limit, _MAX_IN_FLIGHT), most)
        self._thread = LoopThread("cbench-attach")
        self._attached: Future[str] = Future()
        self._stopping = asyncio.Event()
        self._grace = GRACE_S
        self._links = [
            Link(self._host, each, limit, self._stopping, self._welcomed, tls=tls, token=token)
            for each in servers
        ]

    @property
    def names(self) -> list[str]:
        """The names of all that is offered."""
        return self._host.names

    @property
    def ended(self) -> Future[None]:
        """Done when the attachment is over; holds `Refused` if the daemon refused it."""
        return self._thread.result

    def start(self) -> "Attachment":
        """Start dialling, and keep at it. See `wait_attached`."""
        self._thread.start(self._main())
        return self

    def wait_attached(self, timeout: float | None = None) -> str:
        """Wait for the first welcome of a daemon and return the attachment's id.

        Raises `Refused` if the daemon declines, `TimeoutError` if it is silent.
        """
        return self._attached.result(timeout)

    def begin_to_stop(self) -> None:
        """Take no more calls; it ends when those in progress have."""
        self._thread.call(self._stopping.set)

    def stop(self, grace: float = GRACE_S) -> None:
        """Take no more calls, finish those in progress within `grace` seconds, and end."""
        self._grace = grace
        self.begin_to_stop()
        self._thread.join(grace)

    def __enter__(self) -> "Attachment":
        return self.start()

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    async def _main(self) -> None:
        stopping = asyncio.create_task(self._stopping.wait())
        attaching = asyncio.create_task(self._keep_attached())
        try:
            await asyncio.wait({stopping, attaching}, return_when=asyncio.FIRST_COMPLETED)
            if not attaching.done():
                await asyncio.wait({attaching}, timeout=self._grace)
            if attaching.done():
                attaching.result()
        except Refused as refusal:
            if not self._attached.done():
                self._attached.set_exception(refusal)
            raise
        finally:
            attaching.cancel()
            self._host.close()
            if not self._attached.done():
                self._attached.set_exception(TimeoutError(f"never attached to {self.server}"))

    async def _keep_attached(self) -> None:
        """Stay attached to every daemon; one that refuses for good ends it all."""
        links = [asyncio.create_task(link.keep()) for link in self._links]
        try:
            await asyncio.gather(*links)
        finally:
            for link in links:
                link.cancel()

    def _welcomed(self, attachment_id: str) -> None:
        if not self._attached.done():
            self._attached.set_result(attachment_id)


def attach(
    systems: Servables = (),
    server: str = "127.0.0.1:50051",
    *,
    memory_systems: Iterable[Servable] = (),
    evaluators: Iterable[Servable] = (),
    max_concurrency: int | None = None,
    max_in_flight: int | None = None,
    tls: Tls | bool | None = None,
    token: str | None = None,
) -> None:
    """Attach until SIGINT or SIGTERM, then finish the calls in progress and return.

    Takes what `Attachment` takes. A broken connection is renewed for as long
    as it takes. Raises `Refused` when the daemon will not have it.
    """
    attachment = Attachment(
        systems,
        server,
        memory_systems=memory_systems,
        evaluators=evaluators,
        max_concurrency=max_concurrency,
        max_in_flight=max_in_flight,
        tls=tls,
        token=token,
    )
    with ending_on_signals(attachment.begin_to_stop), attachment:
        wait_until_done(attachment.ended)
        attachment.ended.result()
