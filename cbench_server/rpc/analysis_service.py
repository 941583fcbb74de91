"""What is made of stored runs, for clients: comparisons, gates, reports and files."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from cbench_client._gen.cbench.v1 import bench_pb2
from cbench_server.errors import DamagedRun, InvalidInput
from cbench_server.registry import Registry
from cbench_server.reports import WHOLE
from cbench_server.rpc.runs import run_to_proto
from cbench_server.rpc.stored_source import StoredSource
from cbench_server.runs.callers import audit
from cbench_server.runs.new_runs import new_run_id
from cbench_server.runs.orchestrator import Orchestrator
from cbench_server.spec import Run, RunNote

_PIECE_BYTES = 256 * 1024
_CHOICES = {"group_by": "--group-by", "with_texts": "--with-texts", "system": "--system"}

T = TypeVar("T")
Parts = Iterable[str | bytes]


class Spool(Protocol):
    """A file on its way from a client. Leaving the context removes it."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *raised: Any) -> None: ...

    def write(self, content: bytes) -> None:
        """Add a piece, or raise `StoreFull`."""
        ...

    def finish(self) -> Path:
        """Return where all of it can be read."""
        ...


class RunFiles(Protocol):
    """Writes whole runs of a store as files, and reads them into it."""

    def export(self, run_id: str) -> AbstractContextManager[Iterator[bytes]]:
        """Open a run as the bytes of a file."""
        ...

    def spool(self) -> Spool:
        """Start a file for what a client sends; it blocks on the disk."""
        ...

    async def read(self, path: Path, new_id: str) -> tuple[Run, bool]:
        """Store the run of a file, and say whether it is new."""
        ...


class AnalysisMethods:
    """The methods of the Bench service that read stored runs as a whole."""

    def __init__(self, orchestrator: Orchestrator, registry: Registry, files: RunFiles) -> None:
        self._runs = orchestrator
        self._formats = registry
        self._files = files

    def _source(self) -> StoredSource:
        return StoredSource(self._runs.store, self._runs.as_it_is)

    async def Compare(
        self, request: bench_pb2.CompareRequest, context: Any
    ) -> bench_pb2.CompareResponse:
        source = self._source()

        def compared() -> bench_pb2.CompareResponse:
            # Imported here, since it loads numpy.
            from cbench_server.reports.run_comparison import Choice, compare_runs
            from cbench_server.rpc.comparisons import comparison_to_proto

            settings = {"effect": request.effect} if request.HasField("effect") else {}
            choice = Choice(
                systems=tuple(request.systems),
                baseline=request.baseline,
                score_field=request.score_field,
                group_by=tuple(request.group_by),
                **settings,
            )
            run = source.run(request.run_id, "run_id")
            other = None
            if request.other_run_id:
                other = source.run(request.other_run_id, "other_run_id")
            found = compare_runs(source, run, other, choice)
            return bench_pb2.CompareResponse(comparison=comparison_to_proto(found))

        return await _in_thread(source, compared)

    async def Gate(self, request: bench_pb2.GateRequest, context: Any) -> bench_pb2.GateResponse:
        source = self._source()
        if not request.policies:
            raise InvalidInput(
                'there is no policy to check; give one, such as "f1 at least 0.6".',
                field="policies",
            )
        from cbench_server.comparison.policies import parse_policy

        policies = []
        for place, text in enumerate(request.policies):
            try:
                policies.append(parse_policy(text))
            except InvalidInput as error:
                error.field = f"policies[{place}]"
                raise

        def checked() -> bench_pb2.GateResponse:
            from cbench_server.reports.run_gate import gate_run
            from cbench_server.rpc.comparisons import check_to_proto

            run, other = source.run(request.run_id, "run_id"), None
            if request.baseline_run_id:
                other = source.run(request.baseline_run_id, "baseline_run_id")
            found = gate_run(source, run, policies, request.system, other, request.baseline_system)
            return bench_pb2.GateResponse(
                run_id=run.run_id,
                system=found.system,
                passed=all(each.passed for each in found.checks),
                checks=[
                    check_to_proto(each, unsuited=place in found.unsuited)
                    for place, each in enumerate(found.checks)
                ],
            )

        return await _in_thread(source, checked)

    async def Report(
        self, request: bench_pb2.ReportRequest, context: Any
    ) -> AsyncIterator[bench_pb2.ReportResponse]:
        source = self._source()

        def opened() -> tuple[str, AbstractContextManager[Parts]]:
            from cbench_server.reports.page import to_html
            from cbench_server.reports.stored_runs import report_from

            run = source.run(request.run_id, "run_id")
            others = []
            for place, each in enumerate(request.compare_run_ids):
                try:
                    others.append(source.whole_run(each, f"compare_run_ids[{place}]"))
                except DamagedRun as error:
                    text = f"{error.run_id} is left out of the comparison: {error}"
                    run = replace(run, notes=(*run.notes, RunNote("DAMAGED", text)))
            if any(other.run_id == run.run_id for other in others):
                raise InvalidInput(
                    f"{run.run_id} is the run itself; its systems are compared anyway.",
                    field="compare_run_ids",
                )
            report = report_from(source, run, others=others, group_by=tuple(request.group_by))
            return run.run_id, nullcontext(to_html(report))

        async for run_id, content in _pieces(source, opened):
            yield bench_pb2.ReportResponse(run_id=run_id, content=content)

    async def Export(
        self, request: bench_pb2.ExportRequest, context: Any
    ) -> AsyncIterator[bench_pb2.ExportResponse]:
        source = self._source()
        if request.format == WHOLE:
            _refuse_choices(request)

        def opened() -> tuple[str, AbstractContextManager[Parts]]:
            from cbench_server.reports.exports import reporter_of
            from cbench_server.reports.stored_runs import report_from

            if request.format == WHOLE:
                run_id = source.run(request.run_id, "run_id").run_id
                return run_id, self._files.export(run_id)
            run = source.run(request.run_id, "run_id")
            reporter = reporter_of(
                self._formats,
                run,
                request.format,
                with_texts=request.with_texts,
                system=request.system,
            )
            report = report_from(source, run, group_by=tuple(request.group_by))
            return run.run_id, nullcontext(reporter(report))

        async for run_id, content in _pieces(source, opened):
            yield bench_pb2.ExportResponse(run_id=run_id, content=content)

    async def Import(
        self, request_iterator: AsyncIterator[bench_pb2.ImportRequest], context: Any
    ) -> bench_pb2.ImportResponse:
        with await asyncio.to_thread(self._files.spool) as spool:
            new_id, is_first = "", True
            async for request in request_iterator:
                if is_first and request.new_id:
                    new_id = new_run_id(time.time())
                is_first = False
                await asyncio.to_thread(spool.write, request.content)
            if is_first:
                raise InvalidInput("nothing was sent to import.", field="content")
            path = await asyncio.to_thread(spool.finish)
            try:
                run, is_new = await self._files.read(path, new_id)
            except InvalidInput as error:
                # The sender knows nothing of our file.
                error.args = (str(error).replace(str(path), "what was sent"),)
                error.field = "content"
                raise
        if is_new:
            audit("import", f"imported run {run.run_id}", run_id=run.run_id)
        return bench_pb2.ImportResponse(run=run_to_proto(run), already_stored=not is_new)


def _refuse_choices(request: bench_pb2.ExportRequest) -> None:
    """Refuse what chooses parts or views of a run where all of it is written."""
    for field, _ in request.ListFields():
        if field.name in _CHOICES:
            raise InvalidInput(
                f'the format "{WHOLE}" has all of a run; {field.name} is for others.',
                field=field.name,
                flags=f"Drop {_CHOICES[field.name]}.",
            )


async def _in_thread(source: StoredSource, work: Callable[[], T]) -> T:
    try:
        return await asyncio.to_thread(work)
    finally:
        source.is_given_up = True


async def _pieces(
    source: StoredSource, opened: Callable[[], tuple[str, AbstractContextManager[Parts]]]
) -> AsyncIterator[tuple[str, bytes]]:
    """Make a file in a thread of its own, as fast as it is read; its run is named first."""
    loop = asyncio.get_running_loop()
    # One thread, since what reads a store may belong to it.
    thread = ThreadPoolExecutor(1, "cbench-report")
    made = _joined(opened)
    try:
        while (piece := await loop.run_in_executor(thread, next, made, None)) is not None:
            yield piece
    finally:
        source.is_given_up = True
        thread.submit(made.close)
        thread.shutdown(wait=False)


def _joined(
    opened: Callable[[], tuple[str, AbstractContextManager[Parts]]],
) -> Generator[tuple[str, bytes], None, None]:
    """Join the parts of a file into pieces that fit a message."""
    run_id, context = opened()
    with context as parts:
        held = bytearray()
        for part in parts:
            held += part.encode() if isinstance(part, str) else part
            while len(held) >= _PIECE_BYTES:
                yield run_id, bytes(held[:_PIECE_BYTES])
                del held[:_PIECE_BYTES]
                run_id = ""
        yield run_id, bytes(held)
