"""The finder of systems and evaluators that a spec refers to."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from urllib.parse import urlsplit

from cbench_client import RemoteEvaluator, Tls
from cbench_client.errors import ClientError, Refused, Unreachable
from cbench_client.messages.options import DeclaredOptions, declared_options
from cbench_client.remote.connection import SystemConnection
from cbench_client.remote.description import SystemDescription as ServedSystem
from cbench_server.errors import InvalidSpec, SystemUnreachable, UnknownName, blaming
from cbench_server.limits import MAX_DESCRIBED, MAX_NAME
from cbench_server.models.chat import load_http
from cbench_server.models.dialling import dialling, host_of
from cbench_server.models.level import CAP, Level
from cbench_server.models.model import Model
from cbench_server.models.probe import probe
from cbench_server.models.reader import Reader
from cbench_server.registry import Registry
from cbench_server.rpc.attached import AttachedCaller, AttachedEvaluator, find_attached
from cbench_server.rpc.attached_replicas import attached_replicas
from cbench_server.rpc.attachments import Attachments
from cbench_server.rpc.components import location_of
from cbench_server.rpc.credentials import Credentials
from cbench_server.rpc.declared_options import Taker, builtin_options, checked_options, spread
from cbench_server.rpc.dialled_evaluator import DialledEvaluator
from cbench_server.rpc.evaluator_factory import EvaluatorMaker
from cbench_server.rpc.remote import RemoteCaller
from cbench_server.rpc.remote_memory import memory_caller, served_memories
from cbench_server.rpc.replica_finder import find_replicas
from cbench_server.rpc.way import Way
from cbench_server.spec import EvaluatorRef, ModelRef, Options, RunNote, RunSpec, SystemRef
from cbench_server.systems.caller import BUILTIN, Caller, SystemDescription
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
            for caller in callers:
                await caller.close()
            names = [each.name for each in await self._described(ref, is_memory=kind == "memory")]
            raise InvalidSpec(
                f'{ref.target} serves {", ".join(names)}; to name one of them "{ref.name}", say '
                "which one by its served_name.",
                field="served_name",
                flags=f"Name it with {ref.target}/{names[0]}, or for --launch with "
                f"--only-system {names[0]}",
            )
        return callers

    async def spread(
        self, spec: RunSpec
    ) -> tuple[list[tuple[int, SystemRef]], tuple[RunNote, ...]]:
        """Return the spec's systems with the options of the run that each of them takes."""
        takers: list[Taker] = []
        for place, ref in enumerate(spec.systems):
            if spec.options or ref.options:
                with blaming(f"spec.systems[{place}]"):
                    takers += await self._takers(place, ref, spec.kind)
        placed, notes = spread(takers, spec.options)
        return placed if spec.options else list(enumerate(spec.systems)), notes

    async def _takers(self, place: int, ref: SystemRef, kind: str) -> list[Taker]:
        """Ask each system that a reference means for the options it takes."""
        if ref.predictions:
            return [Taker(place, ref, ref.name or "predictions", DeclaredOptions())]
        if ref.proxy is not None:
            return [Taker(place, ref, ref.name or "proxy", None)]
        is_memory = kind == "memory"
        if ref.builtin:
            which = "memory_system" if is_memory else "system"
            arguments = (self._registry, which, ref.builtin)
            with _naming("builtin"):
                declared = await asyncio.to_thread(builtin_options, *arguments)
            return [Taker(place, ref, ref.name or ref.builtin, declared)]
        if ref.attached:
            kinds = "memory_systems" if is_memory else "systems"
            _, info = find_attached(self._attachments, kinds, ref.attached)
            return [Taker(place, ref, ref.name or info.name, declared_options(info))]
        # A memory system that does not say gets none.
        unsaid = DeclaredOptions() if is_memory else None
        return [
            Taker(
                place,
                replace(ref, served_name=each.name),
                ref.name or each.name,
                unsaid if each.declared is None else each.declared,
            )
            for each in await self._described(ref, is_memory=is_memory)
        ]

    async def _described(self, ref: SystemRef, *, is_memory: bool) -> list[ServedSystem]:
        way = await self._way(ref)
        return await (self._memories(ref, way) if is_memory else self._served(ref, way))

    async def _process(self, ref: SystemRef) -> list[Caller]:
        if ref.builtin:
            with _naming("builtin"):
                system = self._registry.create_system(ref.builtin, ref.options)
            where = location_of(self._registry, "system", ref.builtin)
            # What others wrote may take long.
            return [InProcessCaller(system, inline=where == BUILTIN, name=ref.name, location=where)]
        if ref.attached:
            return [self._attached(ref, "systems")]
        if ref.proxy is not None:
            with blaming("proxy"):
                return [await self._proxy(ref.proxy, ref.name)]
        return await self._remote(ref)

    async def _memory(self, ref: SystemRef) -> list[Caller]:
        if ref.builtin:
            # In a thread, since making the first one may mean to import a good deal.
            with _naming("builtin"):
                system = await asyncio.to_thread(
                    self._registry.create_memory_system, ref.builtin, ref.options
                )
            where = location_of(self._registry, "memory_system", ref.builtin)
            return [InProcessMemoryCaller(system, name=ref.name, location=where)]
        if ref.proxy is not None:
            raise InvalidSpec(
                "a model behind a proxy remembers nothing. Let it be the reader, which answers "
                'from what a baseline such as the builtin "full-history" remembers.',
                field="proxy",
                flags=f"As flags: --builtin full-history --reader {ref.proxy.base_url}",
            )
        if ref.attached:
            return [self._attached(ref, "memory_systems")]
        if ref.replicas:
            return await find_replicas(ref, self._describe_memories, self._open_memories)
        return await self._open_memories(ref, await self._describe_memories(ref))

    async def _describe_memories(self, ref: SystemRef) -> list[ServedSystem]:
        return await self._memories(ref, await self._way(ref))

    async def _open_memories(self, ref: SystemRef, served: list[ServedSystem]) -> list[Caller]:
        way = await self._way(ref)
        taken = [_memory_options(each.declared, ref, each.name) for each in served]
        return [
            memory_caller(ref, system, *way, options)
            for system, options in zip(served, taken, strict=True)
        ]

    async def _memories(self, ref: SystemRef, way: Way) -> list[ServedSystem]:
        """Ask a target for the memory systems that a reference means."""
        try:
            return await served_memories(*way, ref.target, ref.served_name)
        except SystemUnreachable as error:
            others = await self._others(ref, way, "process") if _lacks_service(error) else ""
            raise SystemUnreachable(others or way.told(error, ref)) from error

    def _attached(self, ref: SystemRef, kind: str) -> Caller:
        _, info = find_attached(self._attachments, kind, ref.attached)
        declared, name = declared_options(info), ref.attached
        if kind == "memory_systems":
            options = _memory_options(declared, ref, name)
        else:
            options = checked_options(declared, ref.options, f'system "{name}"')
        if len(self._attachments.offering(kind, name)) > 1:
            return attached_replicas(self._attachments, kind, name, options, ref.name)
        return AttachedCaller(self._attachments, kind, name, options, ref.name)

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
        await probe(who, proxy)
        return proxy

    # Other processes.

    async def _remote(self, ref: SystemRef) -> list[Caller]:
        if ref.replicas:
            return await find_replicas(ref, self._describe_served, self._open_served)
        return await self._open_served(ref, await self._describe_served(ref))

    async def _describe_served(self, ref: SystemRef) -> list[ServedSystem]:
        return await self._served(ref, await self._way(ref))

    async def _open_served(self, ref: SystemRef, served: list[ServedSystem]) -> list[Caller]:
        way = await self._way(ref)
        taken = [
            checked_options(each.declared, ref.options, f'system "{each.name}"') for each in served
        ]
        callers: list[Caller] = []
        for system, options in zip(served, taken, strict=True):
            connection = way.open()
            connection.adopt([system])
            callers.append(_remote_caller(connection, system, ref, options))
        return callers

    async def _served(self, ref: SystemRef, way: Way) -> list[ServedSystem]:
        """Ask a target for the systems that a reference means."""
        connection = way.open()
        try:
            served = await connection.describe()
        except (Unreachable, Refused) as error:
            others = await self._others(ref, way, "memory") if _lacks_service(error) else ""
            raise SystemUnreachable(others or way.told(error, ref)) from error
        finally:
            await connection.close()
        if len(served) > MAX_DESCRIBED:
            raise SystemUnreachable(
                f"{ref.target} describes {len(served):,} systems; at most {MAX_DESCRIBED} are "
                "taken."
            )
        for each in served:
            if not is_system_name(each.name):
                raise SystemUnreachable(
                    f"{ref.target} describes a system named {each.name[:40]!r}; a name is 1 to "
                    f"{MAX_NAME} characters that can be printed, without '/'."
                )
        chosen = [each for each in served if ref.served_name in ("", each.name)]
        if not chosen:
            unknown = UnknownName("served system", ref.served_name, [each.name for each in served])
            raise SystemUnreachable(f"at {ref.target} there is {unknown}")
        return chosen

    async def _others(self, ref: SystemRef, way: Way, kind: str) -> str:
        """Say which systems of the other kind a target serves; empty for none."""
        target = ref.target
        if kind == "memory":
            try:
                served = await served_memories(*way, target)
            except SystemUnreachable:
                return ""
            names = [each.name for each in served]
            what, command = "memory systems", "cbench memory run"
        else:
            connection = way.open()
            try:
                names = [system.name for system in await connection.describe()]
            except (Unreachable, Refused):
                return ""
            finally:
                await connection.close()
            what, command = "no memory system but systems that transform examples", "cbench run"
        return f"{target} serves {what}: {', '.join(names)}. Evaluate them with: {command}"

    async def _way(self, ref: SystemRef) -> Way:
        """Return the address to dial, how to secure the connection, and the token to send."""
        token = self._credentials.secret(ref.credential, ref.target) if ref.credential else None
        pinned = await dialling().pin(ref.target)
        tls = None
        if ref.tls is not None:
            # The certificate is made out to the name, which the address no longer tells.
            name = ref.tls.server_name or host_of(ref.target)
            tls = Tls(ref.tls.ca_pem.encode() or None, server_name=name or None)
        return Way(pinned, tls, token)

    # Evaluators.

    async def find(self, ref: EvaluatorRef) -> Evaluator:
        """Return an evaluator served at a target, attached, or registered here."""
        if not (ref.target or ref.attached):
            label = {"label": ref.label} if ref.label else {}
            with _naming("name"):
                made = await self._maker.make(ref.name, {**ref.options, **label})
            is_judge = ref.name.endswith("judge")
            await probe("the judge" if is_judge else f"the model of {ref.name}", made)
            return made
        who = f'evaluator "{ref.attached or ref.name}"'
        if ref.attached:
            attachment, info = find_attached(self._attachments, "evaluators", ref.attached)
            options = checked_options(declared_options(info), ref.options, who)
            return AttachedEvaluator(self._attachments, info, options, sdk=attachment.hello.sdk)
        pinned = await dialling().pin(ref.target)
        evaluator = DialledEvaluator(pinned, ref.name or None, ref.options)
        try:
            await evaluator.connect()
            evaluator.options = checked_options(evaluator.declared, ref.options, who)
        except ClientError as error:
            raise SystemUnreachable(error.problem.replace(pinned, ref.target)) from error
        except InvalidSpec:
            await evaluator.aclose()
            raise
        return evaluator

    async def release(self, evaluator: Evaluator) -> None:
        """Close the channel of an evaluator in another process; others keep nothing open."""
        if isinstance(evaluator, RemoteEvaluator):
            await evaluator.aclose()


def _memory_options(declared: DeclaredOptions | None, ref: SystemRef, name: str) -> Options:
    """Check the options of a memory system, which gets none unless it declares some."""
    who = f'memory system "{name}"'
    if declared is None and ref.options:
        message = f"{who} does not declare its options, so it gets none; set them where it runs."
        raise InvalidSpec(message, field="options")
    return checked_options(declared, ref.options, who)


@contextmanager
def _naming(field: str) -> Iterator[None]:
    """Blame this field for a name that is not known."""
    try:
        yield
    except UnknownName as error:
        error.field = error.field or field
        raise


def _remote_caller(
    connection: SystemConnection, system: ServedSystem, ref: SystemRef, options: Options
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
        connection, system.name, description, converses=system.converses, options=options
    )


def _model(proxy: OpenAIProxy, ref: ModelRef, origin: str) -> Model:
    return Model(
        proxy.client,
        origin=origin,
        system_prompt=ref.system_prompt,
        context_window=ref.context_window,
        price=ref.price,
    )


def is_system_name(name: str) -> bool:
    """Whether a system may call itself so, as attached ones may."""
    return 0 < len(name) <= MAX_NAME and name.isprintable() and "/" not in name


def _lacks_service(error: Exception) -> bool:
    return "does not serve" in str(error) or "serves no" in str(error)


async def _prepare(url: str) -> None:
    """Check that a model's URL may be asked, and load what asking takes."""
    host = urlsplit(url).hostname
    if host is None:
        raise InvalidSpec(f'"{url}" is not a URL such as http://localhost:8080', field="base_url")
    await dialling().check_host(host)
    await asyncio.to_thread(load_http)
