"""The finder of systems and evaluators that a spec refers to."""

import asyncio
from typing import Protocol
from urllib.parse import urlsplit

from cbench_client import RemoteEvaluator, Tls
from cbench_client.errors import ClientError, Unreachable
from cbench_client.remote.connection import SystemConnection
from cbench_client.remote.description import SystemDescription as ServedSystem
from cbench_server.contract import info_of
from cbench_server.errors import CallFailed, InvalidSpec, SystemUnreachable, UnknownName
from cbench_server.models.chat import ChatClient, load_http
from cbench_server.models.level import CAP, Level
from cbench_server.models.model import Model
from cbench_server.models.reader import Reader
from cbench_server.registry import Registry
from cbench_server.rpc.addresses import check_dialable, host_of_target
from cbench_server.rpc.attached import AttachedCaller, AttachedEvaluator, find_attached
from cbench_server.rpc.attachments import Attachments
from cbench_server.rpc.credentials import Credentials
from cbench_server.rpc.evaluator_factory import EvaluatorMaker
from cbench_server.rpc.remote import RemoteCaller
from cbench_server.rpc.remote_memory import remote_memory
from cbench_server.spec import EvaluatorRef, ModelRef, Options, SystemRef
from cbench_server.systems.caller import Caller, SystemDescription
from cbench_server.systems.in_process import InProcessCaller
from cbench_server.systems.in_process_memory import InProcessMemoryCaller
from cbench_server.systems.openai_proxy import OpenAIProxy
from cbench_server.systems.proxy_caller import ProxyCaller
from cbench_server.types import Evaluator

_DEFAULT_MODEL = "claude-haiku-4-5-20251001"
_LONGEST_REQUEST_S = 24 * 3600.0


class Finder:
    """Reaches systems, readers and evaluators for the orchestrator."""

    def __init__(
        self,
        registry: Registry,
        attachments: Attachments,
        credentials: Credentials,
        maker: EvaluatorMaker,
        default_model: str = _DEFAULT_MODEL,
    ) -> None:
        self._registry = registry
        self._attachments = attachments
        self._credentials = credentials
        self._maker = maker
        self._default_model = default_model

    async def find_systems(self, ref: SystemRef, kind: str) -> list[Caller]:
        """Return the systems a reference means, under the name it gives."""
        callers = await (self._memory(ref) if kind == "memory" else self._process(ref))
        if ref.name and len(callers) > 1:
            names = ", ".join(caller.description.name for caller in callers)
            for caller in callers:
                await caller.close()
            raise InvalidSpec(
                f'{ref.target} serves {names}; to name one of them "{ref.name}", '
                f"say which: {ref.target}/{callers[0].description.name}"
            )
        return callers

    async def _process(self, ref: SystemRef) -> list[Caller]:
        if ref.builtin:
            system = self._registry.create_system(ref.builtin, ref.options)
            return [InProcessCaller(system, inline=True, name=ref.name, location="builtin")]
        if ref.attached:
            return [
                AttachedCaller(self._attachments, "systems", ref.attached, ref.options, ref.name)
            ]
        if ref.proxy is not None:
            return [await self._proxy(ref.proxy, ref.name)]
        return await self._remote(ref)

    async def _memory(self, ref: SystemRef) -> list[Caller]:
        if ref.builtin:
            # In a thread, since making the first one may mean to import a good deal.
            system = await asyncio.to_thread(
                self._registry.create_memory_system, ref.builtin, ref.options
            )
            return [InProcessMemoryCaller(system, name=ref.name, location="builtin")]
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
            return [self._attached(ref, "memory_systems", {})]
        if host := host_of_target(ref.target):
            await check_dialable(host)
        try:
            return await remote_memory(ref.target, ref.served_name, *self._security(ref), ref.name)
        except SystemUnreachable as error:
            others = await self._others(ref, "process") if _lacks_service(error) else ""
            raise SystemUnreachable(others or str(error)) from error

    def _attached(self, ref: SystemRef, kind: str, options: Options) -> Caller:
        return AttachedCaller(self._attachments, kind, ref.attached, options, ref.name)

    # Models.

    async def find_reader(self, ref: ModelRef) -> Reader:
        """Return a reader, which the caller closes."""
        proxy = await self._endpoint(ref, "the reader")
        cap = ref.max_concurrency or CAP
        return Reader(_model(proxy, ref, "reader"), Level(cap=cap), ref.timeout)

    async def _proxy(self, ref: ModelRef, name: str) -> Caller:
        proxy = await self._endpoint(ref, "the proxy")
        return ProxyCaller(
            proxy,
            _model(proxy, ref, "system"),
            name=name,
            location=ref.base_url,
            max_concurrency=ref.max_concurrency,
            timeout=ref.timeout,
        )

    async def _endpoint(self, ref: ModelRef, who: str) -> OpenAIProxy:
        await _prepare(ref.base_url)
        proxy = OpenAIProxy(
            ref.base_url,
            ref.model or self._default_model,
            api_key=self._credentials.secret(ref.credential, ref.base_url) or "",
            system_prompt=ref.system_prompt or None,
            # Whoever asks sets the time of a request, and repeats it.
            timeout=_LONGEST_REQUEST_S,
            extra_body=ref.options,
            max_retries=0,
        )
        await _probe(who, proxy)
        return proxy

    # Other processes.

    async def _remote(self, ref: SystemRef) -> list[Caller]:
        if host := host_of_target(ref.target):
            await check_dialable(host)
        first = self._open(ref)
        try:
            served = await first.describe()
        except Unreachable as error:
            await first.close()
            others = await self._others(ref, "memory") if _lacks_service(error) else ""
            raise SystemUnreachable(others or str(error)) from error
        chosen = [each for each in served if ref.served_name in ("", each.name)]
        if not chosen:
            await first.close()
            unknown = UnknownName("served system", ref.served_name, [each.name for each in served])
            raise SystemUnreachable(f"at {ref.target} there is {unknown}")
        callers: list[Caller] = []
        for system in chosen:
            connection = self._open(ref) if callers else first
            connection.adopt(served)
            callers.append(_remote_caller(connection, system, ref))
        return callers

    async def _others(self, ref: SystemRef, kind: str) -> str:
        """Say which systems of the other kind a target serves; empty for none."""
        target = ref.target
        if kind == "memory":
            try:
                callers = await remote_memory(target, "", *self._security(ref))
            except SystemUnreachable:
                return ""
            names = [caller.description.name for caller in callers]
            for caller in callers:
                await caller.close()
            what, command = "memory systems", "cbench memory run"
        else:
            connection = self._open(ref)
            try:
                names = [system.name for system in await connection.describe()]
            except Unreachable:
                return ""
            finally:
                await connection.close()
            what, command = "no memory system but systems that transform examples", "cbench run"
        return f"{target} serves {what}: {', '.join(names)}. Evaluate them with: {command}"

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
            label = {"label": ref.label} if ref.label else {}
            made = await self._maker.make(ref.name, {**ref.options, **label})
            if info_of(made).asks_model:
                await self._probe_judge(ref)
            return made
        if ref.attached:
            _, info = find_attached(self._attachments, "evaluators", ref.attached)
            return AttachedEvaluator(self._attachments, info, ref.options)
        if host := host_of_target(ref.target):
            await check_dialable(host)
        evaluator = RemoteEvaluator(ref.target, ref.name or None, ref.options)
        try:
            await evaluator.connect()
        except ClientError as error:
            raise SystemUnreachable(str(error)) from error
        return evaluator

    async def _probe_judge(self, ref: EvaluatorRef) -> None:
        base_url, credential = (
            str(ref.options.get(key) or "") for key in ("base_url", "credential")
        )
        client = ChatClient(
            base_url, "", api_key=self._credentials.secret(credential, base_url) or ""
        )
        await _probe("the judge", client)
        await client.close_connections()

    async def release(self, evaluator: Evaluator) -> None:
        """Close the channel of an evaluator in another process; others keep nothing open."""
        if isinstance(evaluator, RemoteEvaluator):
            await evaluator.aclose()


def _remote_caller(
    connection: SystemConnection, system: ServedSystem, ref: SystemRef
) -> RemoteCaller:
    description = SystemDescription(
        name=ref.name or system.name,
        version=system.version,
        description=system.description,
        max_concurrency=system.max_concurrency,
        location=ref.target,
        sdk=system.sdk,
    )
    return RemoteCaller(
        connection, system.name, description, converses=system.converses, options=ref.options
    )


def _model(proxy: OpenAIProxy, ref: ModelRef, origin: str) -> Model:
    return Model(
        proxy.client,
        origin=origin,
        system_prompt=ref.system_prompt,
        context_window=ref.context_window,
    )


def _lacks_service(error: Exception) -> bool:
    return "does not serve" in str(error) or "serves no" in str(error)


class _Probed(Protocol):
    async def probe(self) -> None: ...

    async def close_connections(self) -> None: ...


async def _prepare(url: str) -> None:
    """Check that a model's URL may be asked, and load what asking takes."""
    host = urlsplit(url).hostname
    if host is None:
        raise InvalidSpec(f'"{url}" is not a URL such as http://localhost:8080')
    await check_dialable(host)
    await asyncio.to_thread(load_http)


async def _probe(what: str, model: _Probed) -> None:
    """Find out before the first row whether a model's server is there."""
    try:
        await model.probe()
    except CallFailed as error:
        await model.close_connections()
        raise SystemUnreachable(f"{what} at {str(error).rstrip('.')}. Check its URL.") from error
