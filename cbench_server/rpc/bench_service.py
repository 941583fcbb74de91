"""The Bench service: decode, call the orchestrator, encode."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from cbench_client._gen.cbench.v1 import bench_pb2, bench_pb2_grpc
from cbench_client.messages import convert as wire
from cbench_server import __version__
from cbench_server.contract import info_of
from cbench_server.errors import InvalidInput
from cbench_server.events import Progressed, Stored
from cbench_server.registry import Registry
from cbench_server.rpc.attachments import Attachments
from cbench_server.rpc.dataset_info import set_dataset_info
from cbench_server.rpc.evaluator_service import list_evaluators
from cbench_server.rpc.pages import encode_page
from cbench_server.rpc.rows import row_to_proto
from cbench_server.rpc.runs import run_to_proto, states_from_proto
from cbench_server.rpc.specs import evaluator_ref, spec_from_proto
from cbench_server.runs.orchestrator import Orchestrator
from cbench_server.runs.store import RowQuery
from cbench_server.runs.watch import watch
from cbench_server.types import Example


class UploadWriter(AbstractContextManager["UploadWriter"], Protocol):
    """Takes the examples of one upload, and forgets them unless it is finished."""

    count: int

    def add(self, example: Example) -> None:
        """Write one example down."""
        ...

    def finish(self) -> str:
        """Make the upload known and return its digest."""
        ...


class BenchService(bench_pb2_grpc.BenchServicer):
    """Runs, for clients."""

    def __init__(
        self,
        orchestrator: Orchestrator,
        registry: Registry,
        attachments: Attachments,
        open_upload: Callable[[], UploadWriter],
    ) -> None:
        self._orchestrator = orchestrator
        self._store = orchestrator.store
        self._registry = registry
        self._attachments = attachments
        self._open_upload = open_upload

    async def Evaluate(
        self, request: bench_pb2.EvaluateRequest, context: Any
    ) -> AsyncIterator[bytes]:
        spec = spec_from_proto(request.spec)
        run = await self._orchestrator.start(spec, request.request_id)
        async for page in self._watch(run.run_id, 0, rows=not request.omit_rows):
            yield encode_page(page, processed=False)

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
            yield encode_page(page, processed=request.include_processed)

    def _watch(
        self, run_id: str, after: int, *, rows: bool, processed: bool = False
    ) -> AsyncIterator[list[Stored | Progressed]]:
        return watch(
            self._store,
            run_id,
            after,
            rows=rows,
            processed=processed,
            is_closing=lambda: self._orchestrator.is_draining,
        )

    async def GetRun(
        self, request: bench_pb2.GetRunRequest, context: Any
    ) -> bench_pb2.GetRunResponse:
        run = await self._store.get_run(request.run_id)
        return bench_pb2.GetRunResponse(run=run_to_proto(run))

    async def ListRuns(
        self, request: bench_pb2.ListRunsRequest, context: Any
    ) -> bench_pb2.ListRunsResponse:
        size = _page_size(request.page_size, 50, 1000)
        runs = await self._store.list_runs(
            limit=size + 1,
            before=request.page_token or None,
            states=states_from_proto(request.states),
            labels=dict(request.labels),
        )
        response = bench_pb2.ListRunsResponse(
            runs=[run_to_proto(run, with_config=False) for run in runs[:size]]
        )
        if len(runs) > size:
            response.next_page_token = runs[size - 1].run_id
        return response

    async def ListRows(
        self, request: bench_pb2.ListRowsRequest, context: Any
    ) -> bench_pb2.ListRowsResponse:
        query = RowQuery(
            system=request.system,
            failed_only=request.failed_only,
            processed=request.include_processed,
            original=request.include_original,
            limit=_page_size(request.page_size, 500, 5000),
        )
        page = await self._store.read_rows(request.run_id, query, request.page_token or None)
        response = bench_pb2.ListRowsResponse(next_page_token=page.next_token or "")
        for position, row in enumerate(page.rows):
            message = response.rows.add()
            row_to_proto(row, message, processed=request.include_processed)
            if page.originals is not None:
                wire.example_to_proto(page.originals[position], message.original)
        return response

    async def CancelRun(
        self, request: bench_pb2.CancelRunRequest, context: Any
    ) -> bench_pb2.CancelRunResponse:
        run = await self._orchestrator.cancel(request.run_id)
        return bench_pb2.CancelRunResponse(run=run_to_proto(run))

    async def ResumeRun(
        self, request: bench_pb2.ResumeRunRequest, context: Any
    ) -> bench_pb2.ResumeRunResponse:
        run = await self._orchestrator.resume(request.run_id)
        return bench_pb2.ResumeRunResponse(run=run_to_proto(run))

    async def Rescore(
        self, request: bench_pb2.RescoreRequest, context: Any
    ) -> bench_pb2.RescoreResponse:
        run = await self._orchestrator.rescore(
            request.run_id,
            [evaluator_ref(each) for each in request.evaluators],
            references_upload=request.references_upload,
            labels=dict(request.labels),
            request_id=request.request_id,
            allow_unqualified_judges=request.allow_unqualified_judges,
            errata_upload=request.errata_upload,
            labels_upload=request.labels_upload,
        )
        return bench_pb2.RescoreResponse(run=run_to_proto(run))

    async def DeleteRun(
        self, request: bench_pb2.DeleteRunRequest, context: Any
    ) -> bench_pb2.DeleteRunResponse:
        await self._orchestrator.delete(request.run_id)
        return bench_pb2.DeleteRunResponse()

    async def UploadExamples(
        self, request_iterator: AsyncIterator[bench_pb2.UploadExamplesRequest], context: Any
    ) -> bench_pb2.UploadExamplesResponse:
        with await asyncio.to_thread(self._open_upload) as upload:
            async for request in request_iterator:
                await asyncio.to_thread(_add_all, upload, request)
            if upload.count == 0:
                raise InvalidInput("the upload holds no examples.")
            digest = await asyncio.to_thread(upload.finish)
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
                getattr(response, f"{kind}s").add(
                    name=name,
                    version=said.version,
                    description=said.description,
                    location="builtin",
                )
        for attachment in self._attachments.all:
            for kind in ("systems", "memory_systems", "evaluators"):
                for info in getattr(attachment.hello, kind):
                    entry = getattr(response, kind).add()
                    entry.CopyFrom(info)
                    entry.location = "attached"
        return response


def _add_all(upload: UploadWriter, request: bench_pb2.UploadExamplesRequest) -> None:
    for message in request.examples:
        upload.add(wire.example_from_proto(message))


def _page_size(asked: int, default: int, most: int) -> int:
    if asked < 0:
        raise InvalidInput(f"page_size must not be negative; it is {asked}.")
    return min(asked or default, most)
