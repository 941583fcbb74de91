"""From references to systems and evaluators, wherever they are."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import replace
from urllib.parse import urlsplit

from cbench_client import RemoteEvaluator, Tls
from cbench_client.connection import SystemConnection
from cbench_client.connection import SystemDescription as ServedSystem
from cbench_client.errors import ClientError, Unreachable
from cbench_server.credentials import Credentials
from cbench_server.dialling import check_dialable, host_of_target
from cbench_server.errors import InvalidSpec, SystemUnreachable, UnknownName
from cbench_server.evaluator_making import EvaluatorMaker
from cbench_server.registry import Registry
from cbench_server.rpc.attached import AttachedCaller, AttachedEvaluator
from cbench_server.rpc.attached_memory import attached_memory
from cbench_server.rpc.attachments import Attachments
from cbench_server.rpc.convert import description_from_info
from cbench_server.rpc.remote_caller import RemoteCaller
from cbench_server.rpc.remote_memory import remote_memory
from cbench_server.spec import EvaluatorRef, ModelRef, SystemRef
from cbench_server.systems.caller import Caller, RenamedCaller, SystemDescription
from cbench_server.systems.chat import ChatClient
from cbench_server.systems.in_process import InProcessCaller
from cbench_server.systems.in_process_memory import InProcessMemoryCaller
from cbench_server.systems.memory_caller import MemoryCaller, RenamedMemoryCaller
from cbench_server.systems.memory_reader import MemoryReaderCaller
from cbench_server.systems.openai_proxy import OpenAIProxy
from cbench_server.systems.reader import ReaderCaller
from cbench_server.types import Evaluator

_DEFAULT_MODEL = "claude-haiku-4-5-20251001"


class Finder:
    """Reaches systems, readers and evaluators for the orchestrator."""

    def __init__(
        self,
        registry: Registry,
        attachments: Attachments,
        credentials: Credentials,
        maker: EvaluatorMaker,
        executor: Executor,
        default_model: str = _DEFAULT_MODEL,
    ) -> None:
        self._registry = registry
        self._attachments = attachments
        self._credentials = credentials
        self._maker = maker
        self._executor = executor
        self._default_model = default_model

    async def find_systems(self, ref: SystemRef, reader: ModelRef | None) -> list[Caller]:
        """Return the systems a reference means; a reader answers for those that do not."""
        callers = await self._locate(ref)
        if ref.name:
            _check_single(ref, [caller.description for caller in callers])
            callers = [RenamedCaller(callers[0], ref.name)]
        if reader is None:
            return callers
        client = await self._chat(reader)
        return [
            ReaderCaller(caller, client, system_prompt=reader.system_prompt) for caller in callers
        ]

    async def find_memory_systems(
        self, ref: SystemRef, reader: ModelRef | None
    ) -> list[MemoryCaller]:
        """Return the memory systems a reference means; a reader answers for those that do not."""
        callers = await self._locate_memory(ref)
        if ref.name:
            _check_single(ref, [caller.description for caller in callers])
            callers = [RenamedMemoryCaller(callers[0], ref.name)]
        if reader is None:
            return callers
        client = await self._chat(reader)
        return [
            MemoryReaderCaller(caller, client, system_prompt=reader.system_prompt)
            for caller in callers
        ]

    async def _locate_memory(self, ref: SystemRef) -> list[MemoryCaller]:
        if ref.builtin:
            # In a thread, since making the first one may mean to import a good deal.
            system = await asyncio.to_thread(
                self._registry.create_memory_system, ref.builtin, ref.options
            )
            return [InProcessMemoryCaller(system, executor=self._executor, location="builtin")]
        if ref.proxy is not None:
            raise InvalidSpec(
                "a model behind a proxy remembers nothing. Let it answer from what a baseline "
                f"remembers: --builtin full-history --reader {ref.proxy.base_url}"
            )
        if ref.options:
            raise InvalidSpec(
                f'memory system "{ref.attached or ref.target}" takes no options over the wire; '
                "set them where it is served."
            )
        if ref.attached:
            return [attached_memory(self._attachments, ref.attached)]
        if host := host_of_target(ref.target):
            await check_dialable(host)
        return await remote_memory(ref.target, ref.served_name, *self._security(ref))

    async def _locate(self, ref: SystemRef) -> list[Caller]:
        if ref.builtin:
            system = self._registry.create_system(ref.builtin, ref.options)
            return [
                InProcessCaller(system, executor=self._executor, inline=True, location="builtin")
            ]
        if ref.attached:
            return [self._attached(ref)]
        if ref.proxy is not None:
            return [await self._proxy(ref.proxy)]
        return await self._remote(ref)

    # Models.

    async def _chat(self, ref: ModelRef) -> ChatClient:
        await _check_url(ref.base_url)
        return ChatClient(
            ref.base_url,
            ref.model or self._default_model,
            api_key=self._credentials.secret(ref.credential, ref.base_url) or "",
            timeout=60.0,
            extra_body=ref.options,
        )

    async def _proxy(self, ref: ModelRef) -> Caller:
        await _check_url(ref.base_url)
        proxy = OpenAIProxy(
            ref.base_url,
            ref.model or self._default_model,
            api_key=self._credentials.secret(ref.credential, ref.base_url) or "",
            system_prompt=ref.system_prompt or None,
            timeout=600.0,
            extra_body=ref.options,
            # The lane retries, so that backoff does not count as the model's latency.
            max_retries=0,
        )
        return InProcessCaller(proxy, executor=self._executor, location=ref.base_url)

    # Other processes.

    def _attached(self, ref: SystemRef) -> Caller:
        attachment = self._attachments.system(ref.attached)
        if attachment is None:
            known = [info.name for entry in self._attachments.all for info in entry.hello.systems]
            raise SystemUnreachable(str(UnknownName("attached system", ref.attached, known)))
        info = next(info for info in attachment.hello.systems if info.name == ref.attached)
        description = description_from_info(info, "attached", attachment.hello.sdk)
        width = min(
            description.max_concurrency or attachment.max_in_flight, attachment.max_in_flight
        )
        return AttachedCaller(
            self._attachments, info, replace(description, max_concurrency=width), ref.options
        )

    async def _remote(self, ref: SystemRef) -> list[Caller]:
        if host := host_of_target(ref.target):
            await check_dialable(host)
        asked = self._open(ref)
        try:
            served = await _describe(asked)
        finally:
            await asked.close()
        if ref.served_name:
            chosen = [system for system in served if system.name == ref.served_name]
            if not chosen:
                names = [system.name for system in served]
                unknown = UnknownName("served system", ref.served_name, names)
                raise SystemUnreachable(f"at {ref.target} there is {unknown}")
            served = chosen
        callers: list[Caller] = []
        for system in served:
            connection = self._open(ref)
            await _describe(connection)
            callers.append(_remote_caller(connection, system, ref))
        return callers

    def _security(self, ref: SystemRef) -> tuple[Tls | None, str | None]:
        """Return how to secure the connection, and the token to send."""
        tls = None
        if ref.tls is not None:
            tls = Tls(ref.tls.ca_pem.encode() or None, server_name=ref.tls.server_name or None)
        token = self._credentials.secret(ref.credential, ref.target) if ref.credential else None
        return tls, token

    def _open(self, ref: SystemRef) -> SystemConnection:
        tls, token = self._security(ref)
        try:
            return SystemConnection(ref.target, tls=tls, token=token)
        except ClientError as error:
            raise InvalidSpec(str(error)) from error

    # Evaluators.

    async def find(self, ref: EvaluatorRef) -> Evaluator:
        """Return an evaluator served at a target, attached, or registered here."""
        if not (ref.target or ref.attached):
            return await self._maker.make(ref.name, ref.options)
        if ref.attached:
            attachment = self._attachments.evaluator(ref.attached)
            if attachment is None:
                known = [
                    info.name for entry in self._attachments.all for info in entry.hello.evaluators
                ]
                raise SystemUnreachable(str(UnknownName("attached evaluator", ref.attached, known)))
            info = next(i for i in attachment.hello.evaluators if i.name == ref.attached)
            return AttachedEvaluator(self._attachments, info, ref.options)
        if host := host_of_target(ref.target):
            await check_dialable(host)
        evaluator = RemoteEvaluator(ref.target, ref.name or None, ref.options)
        try:
            await evaluator.connect()
        except ClientError as error:
            raise SystemUnreachable(str(error)) from error
        return evaluator


async def _describe(connection: SystemConnection) -> Sequence[ServedSystem]:
    try:
        return await connection.describe()
    except Unreachable as error:
        raise SystemUnreachable(str(error)) from error


def _check_single(ref: SystemRef, found: Sequence[SystemDescription]) -> None:
    if len(found) > 1:
        names = ", ".join(description.name for description in found)
        raise InvalidSpec(
            f'{ref.target} serves {names}; to name one of them "{ref.name}", '
            f"say which: {ref.target}/{found[0].name}"
        )


def _remote_caller(
    connection: SystemConnection, system: ServedSystem, ref: SystemRef
) -> RemoteCaller:
    description = SystemDescription(
        name=system.name,
        version=system.version,
        description=system.description,
        max_concurrency=system.max_concurrency,
        location=ref.target,
        sdk=system.sdk,
    )
    return RemoteCaller(
        connection, system.name, description, converses=system.converses, options=ref.options
    )


async def _check_url(url: str) -> None:
    host = urlsplit(url).hostname
    if host is None:
        raise InvalidSpec(f'"{url}" is not a URL such as http://localhost:8080')
    await check_dialable(host)
