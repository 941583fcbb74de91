"""Door of the daemon: every call passes it, and is judged before any of its message is read.

gRPC reads the message of a unary call before it asks any of our code. So every
RPC is served as a stream here, of which nothing is read until we ask for it.
"""

import inspect
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, aclosing
from typing import Any

import grpc
import grpc.aio

from cbench_server.errors import (
    Forbidden,
    InvalidInput,
    LimitReached,
    Unauthenticated,
    contained,
)
from cbench_server.rpc.call_shares import CallShares
from cbench_server.rpc.grants import Grant
from cbench_server.rpc.keyring import Keyring
from cbench_server.rpc.message_room import MessageRoom, sized
from cbench_server.rpc.request_sizes import TooLarge, bounded
from cbench_server.rpc.roles import EVERYONE, METHODS, is_open_to, with_included
from cbench_server.rpc.status import abort, code_of
from cbench_server.rpc.strangers import Strangers
from cbench_server.rpc.unknown_fields import refuse_unknown_fields
from cbench_server.runs.callers import ADMIN, Caller, set_caller

log = logging.getLogger(__name__)

_BENCH = "/cbench.v1.Bench/"
_TELL_REFUSALS_EVERY_S = 10.0

Served = Callable[[str, str, float], None]
"""Told the method of a call that is over, its status, and the seconds it took."""


class Door(grpc.aio.ServerInterceptor):
    """Lets known callers in where their roles allow it, as many as there is room for."""

    def __init__(self, keyring: Keyring, shares: CallShares, served: Served | None = None) -> None:
        self._served = served
        self._keyring = keyring
        self._shares = shares
        self._strangers = Strangers()
        self._room = MessageRoom()
        self._refused = 0
        self._told_at = -_TELL_REFUSALS_EVERY_S

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], handler_call_details: Any
    ) -> Any:
        """Serve a call of any kind as a stream that begins with a judgement."""
        handler = await continuation(handler_call_details)
        if handler is None:
            return None

        async def serve(_: AsyncIterator[Any], context: Any) -> None:
            begun = time.perf_counter()
            code = grpc.StatusCode.CANCELLED
            try:
                with contained("what was named in the request"):
                    await self._serve(handler_call_details, handler, context)
                code = grpc.StatusCode.OK
            except grpc.aio.AbortError:
                code = context.code()
                raise
            except Exception as error:
                code = code_of(error)
                try:
                    await abort(context, error)
                finally:
                    let_go(error)
            finally:
                if self._served is not None:
                    seconds = time.perf_counter() - begun
                    self._served(handler_call_details.method, code.name, seconds)

        read = handler.request_deserializer
        if _is_looked_through(handler_call_details.method, handler):
            read = bounded(read)
        if not handler.request_streaming:
            read = sized(read)
        built: Any = grpc.stream_stream_rpc_method_handler(
            serve, read, _or_bytes(handler.response_serializer)
        )
        return built

    async def _serve(self, details: Any, handler: Any, context: Any) -> None:
        is_open = METHODS.get(details.method) is EVERYONE
        grant = None
        if self._keyring.is_locked:
            grant = self._keyring.find(details.invocation_metadata, context)
            if grant is None and not is_open:
                self._count_refusal(context.peer())
                raise Unauthenticated(
                    "this daemon wants a bearer token, and the call carried none that it knows. "
                    "Send one as the metadata `authorization: Bearer TOKEN`."
                )
            if grant is None:
                await self._answer_blindly(handler, context)
                return
        caller = _caller(details.method, grant, context.peer())
        with ExitStack() as held:
            try:
                held.enter_context(self._shares.place(caller.name))
            except LimitReached:
                if not is_open:
                    raise
                await self._answer_blindly(handler, context)
                return
            if grant is not None:
                held.enter_context(self._keyring.living(grant))
            set_caller(caller)
            who = caller.name or caller.peer
            async with self._room.question(details.method, handler, context, who) as question:
                if isinstance(question, TooLarge):
                    raise InvalidInput(question.why)
                if _is_looked_through(details.method, handler):
                    refuse_unknown_fields(question)
                await _answer(handler, question, context)

    async def _answer_blindly(self, handler: Any, context: Any) -> None:
        """Answer what is open to all as if the question were empty, without reading it."""
        with self._strangers.place():
            await _answer(handler, handler.request_deserializer(b""), context)

    def _count_refusal(self, peer: str) -> None:
        """Log that someone is refused, but not for every call of a flood."""
        self._refused += 1
        now = time.monotonic()
        if now - self._told_at >= _TELL_REFUSALS_EVERY_S:
            extra = {"calls": self._refused, "peer": peer}
            log.warning("refused calls without a valid token", extra=extra)
            self._refused, self._told_at = 0, now


def let_go(error: BaseException | None) -> None:
    """Let go of what the calls that raised an error held.

    gRPC keeps the error beside the call and the call beside the error, and with them the message,
    until the interpreter looks for such circles, which many large messages do not make it do.
    The frames themselves are left alone: one error may go to several who wait, such as all whose
    writes were one group, and to clear the frame of one that goes on would end it.
    """
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        error.__traceback__ = None
        error = error.__cause__ or error.__context__


def _is_looked_through(method: str, handler: Any) -> bool:
    return method.startswith(_BENCH) and not handler.request_streaming


def _caller(method: str, grant: Grant | None, peer: str) -> Caller:
    """Return who calls, or refuse what its roles do not open."""
    if grant is None:
        return Caller(peer=peer)
    roles = with_included(grant.roles)
    if not is_open_to(method, roles):
        wanted = sorted(METHODS.get(method, (ADMIN,)))
        raise Forbidden(
            f'the token of "{grant.name}" is for {", ".join(sorted(grant.roles))}, and '
            f"{method.rpartition('/')[2]} asks for {' or '.join(wanted)}. Get a token that has "
            f"it: cbench tokens create NAME --role {wanted[0]}"
        )
    return Caller(grant.name, roles, grant.names, peer)


async def _answer(handler: Any, question: Any, context: Any) -> None:
    method = (
        handler.unary_unary or handler.unary_stream or handler.stream_unary or handler.stream_stream
    )
    if inspect.isasyncgenfunction(method):
        async with aclosing(method(question, context)) as answers:
            async for answer in answers:
                await context.write(answer)
        return
    answer = await method(question, context)
    # A stream that is not a generator has written by itself.
    if not handler.response_streaming:
        await context.write(answer)


def _or_bytes(serialize: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    """Let a method return what is encoded already."""
    return lambda message: message if type(message) is bytes else serialize(message)
