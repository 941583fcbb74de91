"""The Bench service: decode, call the orchestrator, encode."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from cbench_client._gen.cbench.v1 import bench_pb2, bench_pb2_grpc
from cbench_client.messages import convert as wire
from cbench_client.messages.options import options_to_proto
from cbench_server import __version__
from cbench_server.contract import info_of
from cbench_server.errors import CbenchError, Forbidden, InvalidInput, UnknownName
from cbench_server.events import Seen
from cbench_server.registry import Registry
from cbench_server.rpc.analysis_service import AnalysisMethods, RunFiles
from cbench_server.rpc.attachments import Attachments
from cbench_server.rpc.components import location_of
from cbench_server.rpc.dataset_info import set_dataset_info
from cbench_server.rpc.declared_options import builtin_options
from cbench_server.rpc.evaluator_service import list_evaluators
from cbench_server.rpc.fitting import fit
from cbench_server.rpc.pages import encode_page
from cbench_server.rpc.retention_service import RetentionMethods, Tidy
from cbench_server.rpc.rows import optional, row_to_proto
from cbench_server.rpc.runs import run_to_proto, states_from_proto
from cbench_server.rpc.specs import evaluator_ref, spec_from_proto
from cbench_server.runs.callers import audit, current_caller
from cbench_server.runs.orchestrator import Orchestrator
from cbench_server.runs.store import RowQuery
from cbench_server.runs.unbroken import opened
from cbench_server.runs.watch import watch
from cbench_server.spec import EvaluatorRef, Run
from cbench_server.types import Example

# A page is large until it is encoded, and as many watchers may ask at once as a daemon takes calls.
_PAGES_AT_ONCE = 4
# How large pages are, as it is stored, and how much larger what is stored may be as a message.
_EVENTS_BYTES, _PAGE_BYTES, _MARGIN = 1_000_000, 8_000_000, 4


class UploadWriter(AbstractContextManager["UploadWriter"], Protocol):
    """Takes the examples of one upload, and forgets them unless it is finished."""

    count: int

    def add(self, example: Example) -> None:
        """Write one example down."""
        ...

    def finish(self) -> str:
        """Make the upload known and return its digest."""
        ...


class BenchService(AnalysisMethods, RetentionMethods, bench_pb2_grpc.BenchServicer):
    """Runs, for clients."""

    def __init__(
        self,
        orchestrator: Orchestrator,
        registry: Registry,
        attachments: Attachments,
        open_upload: Callable[[], UploadWriter],
        files: RunFiles,
        tidy: Tidy,
        max_message_bytes: int,
    ) -> None:
        AnalysisMethods.__init__(self, orchestrator, registry, files)
        RetentionMethods.__init__(self, orchestrator, tidy)
        self._orchestrator = orchestrator
        self._store = orchestrator.store
        self._registry = registry
        self._attachments = attachments
        self.watchers = 0
        """Streams of events that are followed now."""
        self._open_upload = open_upload
        self._max_message_bytes = max_message_bytes
        self._reading = asyncio.Semaphore(_PAGES_AT_ONCE)

    async def Evaluate(
        self, request: bench_pb2.EvaluateRequest, context: Any
    ) -> AsyncIterator[bytes]:
        spec = spec_from_proto(request.spec)
        run = await self._orchestrator.start(spec, request.request_id)
        async for page in self._watch(run.run_id, 0, rows=not request.omit_rows):
            data = self._encoded(page, processed=False)
            del page
            yield data

    async def WatchRun(
        self, request: bench_pb2.WatchRunRequest, context: Any
    ) -> AsyncIterator[bytes]:
        pages = self._watch(
            request.run_id,
            request.after_sequence,
            rows=not request.omit_rows,
            processed=request.include_processed,
        )
        async for page in pages:
            data = self._encoded(page, processed=request.include_processed)
            del page
            yield data

    def _encoded(self, page: list[Seen], *, processed: bool) -> bytes:
        return encode_page(page, processed=processed, max_bytes=self._max_message_bytes)

    async def _watch(
        self, run_id: str, after: int, *, rows: bool, processed: bool = False
    ) -> AsyncIterator[list[Seen]]:
        pages = watch(
            self._store,
            run_id,
            after,
            rows=rows,
            processed=processed,
            is_closing=lambda: self._orchestrator.is_draining,
            as_it_is=self._orchestrator.as_it_is,
            reading=self._reading,
            max_bytes=min(_EVENTS_BYTES, self._max_message_bytes // _MARGIN),
        )
        self.watchers += 1
        try:
            async for page in pages:
                yield page
        finally:
            self.watchers -= 1

    async def GetRun(
        self, request: bench_pb2.GetRunRequest, context: Any
    ) -> bench_pb2.GetRunResponse:
        run = self._orchestrator.as_it_is(await self._store.get_run(request.run_id))
        return bench_pb2.GetRunResponse(run=run_to_proto(run))

    async def ListRuns(
        self, request: bench_pb2.ListRunsRequest, context: Any
    ) -> bench_pb2.ListRunsResponse:
        size = _page_size(request.page_size, 50, 1000)
        page = await self._store.page_runs(
            limit=size,
            before=request.page_token or None,
            states=states_from_proto(request.states),
            labels=dict(request.labels),
            created_by=current_caller().name if request.mine else None,
            max_bytes=min(_PAGE_BYTES, self._max_message_bytes // _MARGIN),
        )
        as_it_is = self._orchestrator.as_it_is
        return bench_pb2.ListRunsResponse(
            runs=[run_to_proto(as_it_is(run), with_config=False) for run in page.runs],
            next_page_token=page.next_before or "",
        )

    async def ListRows(
        self, request: bench_pb2.ListRowsRequest, context: Any
    ) -> bench_pb2.ListRowsResponse:
        query = RowQuery(
            system=request.system,
            failed_only=request.failed_only,
            processed=request.include_processed,
            original=request.include_original,
            limit=_page_size(request.page_size, 500, 5000),
            max_bytes=min(_PAGE_BYTES, self._max_message_bytes // _MARGIN),
        )
        page = await self._store.read_rows(request.run_id, query, request.page_token or None)
        if request.system and not page.rows:
            await self._check_system(request.run_id, request.system)
        response = bench_pb2.ListRowsResponse(next_page_token=page.next_token or "")
        for position, row in enumerate(page.rows):
            message = response.rows.add()
            row_to_proto(row, message, processed=request.include_processed)
            if page.originals is not None:
                wire.example_to_proto(page.originals[position], message.original)
        if response.ByteSize() > self._max_message_bytes:
            fit(response.rows, self._max_message_bytes)
        return response

    async def _check_system(self, run_id: str, system: str) -> None:
        """Refuse the name of a system that a run has not; one that it has may have no rows."""
        run = await self._store.get_run(run_id)
        known = {*run.systems, *run.progress}
        if system not in known:
            error = UnknownName("system", system, known)
            error.args = (f'run "{run_id}" has {error}'.partition(" List them with")[0],)
            error.field = "system"
            raise error

    async def CancelRun(
        self, request: bench_pb2.CancelRunRequest, context: Any
    ) -> bench_pb2.CancelRunResponse:
        await self._check_own(request.run_id, "cancel")
        run = await self._orchestrator.cancel(request.run_id)
        audit("cancel", f"cancelled run {run.run_id}", run_id=run.run_id)
        return bench_pb2.CancelRunResponse(run=run_to_proto(run))

    async def ResumeRun(
        self, request: bench_pb2.ResumeRunRequest, context: Any
    ) -> bench_pb2.ResumeRunResponse:
        await self._check_own(request.run_id, "resume")
        if request.waiting_reason:
            run = await self._explained(request.run_id, request.waiting_reason)
        else:
            budget_usd = optional(request, "budget_usd")
            run = await self._orchestrator.resume(request.run_id, budget_usd)
            audit("resume", f"resumed run {run.run_id}", run_id=run.run_id)
        return bench_pb2.ResumeRunResponse(run=run_to_proto(run))

    async def ExplainWait(
        self, request: bench_pb2.ExplainWaitRequest, context: Any
    ) -> bench_pb2.ExplainWaitResponse:
        await self._check_own(request.run_id, "explain")
        run = await self._explained(request.run_id, request.reason)
        return bench_pb2.ExplainWaitResponse(run=run_to_proto(run))

    async def _explained(self, run_id: str, reason: str) -> Run:
        run = await self._orchestrator.explain_wait(run_id, reason)
        audit("explain", f"said why run {run.run_id} waits", run_id=run.run_id)
        return run

    async def Rescore(
        self, request: bench_pb2.RescoreRequest, context: Any
    ) -> bench_pb2.RescoreResponse:
        evaluators = [
            evaluator_ref(each, f"evaluators[{place}]")
            for place, each in enumerate(request.evaluators)
        ]
        try:
            run = await self._rescored(request, evaluators)
        except CbenchError as error:
            # Its fields are those of a spec, without one around them.
            error.field = error.field.removeprefix("spec.")
            raise
        return bench_pb2.RescoreResponse(run=run_to_proto(run))

    async def _rescored(
        self, request: bench_pb2.RescoreRequest, evaluators: list[EvaluatorRef]
    ) -> Run:
        return await self._orchestrator.rescore(
            request.run_id,
            evaluators,
            references_upload=request.references_upload,
            labels=dict(request.labels),
            request_id=request.request_id,
            allow_unqualified_judges=request.allow_unqualified_judges,
            errata_upload=request.errata_upload,
            labels_upload=request.labels_upload,
        )

    async def DeleteRun(
        self, request: bench_pb2.DeleteRunRequest, context: Any
    ) -> bench_pb2.DeleteRunResponse:
        await self._check_own(request.run_id, "delete")
        if await self._orchestrator.delete(request.run_id):
            audit("delete", f"deleted run {request.run_id}", run_id=request.run_id)
        return bench_pb2.DeleteRunResponse()

    async def _check_own(self, run_id: str, action: str) -> None:
        """Refuse to change the run of another, unless an admin asks."""
        caller = current_caller()
        if caller.is_admin:
            return
        created_by = (await self._store.get_run(run_id)).created_by
        if created_by != caller.name:
            whose = f'by "{created_by}"' if created_by else "without a token"
            raise Forbidden(
                f'run "{run_id}" was started {whose}; who started it, or an admin, can '
                f'{action} it, and the token of "{caller.name}" is neither.'
            )

    async def UploadExamples(
        self, request_iterator: AsyncIterator[bench_pb2.UploadExamplesRequest], context: Any
    ) -> bench_pb2.UploadExamplesResponse:
        with await opened(self._open_upload) as upload:
            async for request in request_iterator:
                await asyncio.to_thread(_add_all, upload, request)
            if upload.count == 0:
                raise InvalidInput("the upload holds no examples.", field="examples")
            digest = await asyncio.to_thread(upload.finish)
        audit("upload", f"uploaded {upload.count} examples as {digest}", digest=digest)
        return bench_pb2.UploadExamplesResponse(digest=digest, example_count=upload.count)

    async def ListComponents(
        self, request: bench_pb2.ListComponentsRequest, context: Any
    ) -> bench_pb2.ListComponentsResponse:
        response = bench_pb2.ListComponentsResponse(
            evaluators=list_evaluators(self._registry), server_version=__version__
        )
        for name in self._registry.list("dataset"):
            set_dataset_info(self._registry, name, response.datasets.add())
        for name in self._registry.list("metric"):
            said = info_of(self._registry.get("metric", name))
            response.metrics.add(name=name, description=said.description, keys=said.keys)
        for kind in ("system", "memory_system"):
            for name in self._registry.list(kind):
                said = info_of(self._registry.get(kind, name))
                entry = getattr(response, f"{kind}s").add(
                    name=name,
                    version=said.version,
                    description=said.description,
                    location=location_of(self._registry, kind, name),
                )
                declared = builtin_options(self._registry, kind, name)
                options_to_proto(declared, entry.declared_options)
        for kind, info, count in self._attachments.offers:
            entry = getattr(response, kind).add()
            entry.CopyFrom(info)
            entry.location = "attached" if count == 1 else f"attached, {count} replicas"
        return response


def _add_all(upload: UploadWriter, request: bench_pb2.UploadExamplesRequest) -> None:
    for message in request.examples:
        upload.add(wire.example_from_proto(message))


def _page_size(asked: int, default: int, most: int) -> int:
    if asked < 0:
        raise InvalidInput(f"page_size must not be negative; it is {asked}.", field="page_size")
    return min(asked or default, most)
