"""What a daemon makes of stored runs: comparisons, gates, reports and files."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import grpc
from google.protobuf.message import Message

from cbench_client._gen.cbench.v1 import bench_pb2, comparison_pb2
from cbench_client.bench.requests import Requests

_PIECE_BYTES = 1024 * 1024


class AnalysisClient(Requests):
    """The methods of `BenchClient` that read stored runs as a whole.

    A run is named by its id, by a prefix that only one id has, or by `last`.
    They take as long as they need: no timeout bounds them.
    """

    def compare(
        self,
        run_id: str,
        other_run_id: str = "",
        *,
        systems: Sequence[str] = (),
        baseline: str = "",
        score_field: str = "",
        group_by: Sequence[str] = (),
        effect: float | None = None,
    ) -> comparison_pb2.Comparison:
        """Compare systems of one run, or those of two, example by example.

        `effect` is the smallest difference that matters, as a share of the largest score.
        """
        request = bench_pb2.CompareRequest(
            run_id=run_id,
            other_run_id=other_run_id,
            systems=systems,
            baseline=baseline,
            score_field=score_field,
            group_by=group_by,
            effect=effect,
        )
        return self._call_long("Compare", request, bench_pb2.CompareResponse).comparison

    def gate(
        self,
        run_id: str,
        policies: Sequence[str],
        *,
        system: str = "",
        baseline_run_id: str = "",
        baseline_system: str = "",
    ) -> bench_pb2.GateResponse:
        """Check a system of a run against policies, such as `f1 at least 0.6`."""
        request = bench_pb2.GateRequest(
            run_id=run_id,
            policies=policies,
            system=system,
            baseline_run_id=baseline_run_id,
            baseline_system=baseline_system,
        )
        return self._call_long("Gate", request, bench_pb2.GateResponse)

    def report(
        self, run_id: str, *, compare_run_ids: Sequence[str] = (), group_by: Sequence[str] = ()
    ) -> Iterator[bytes]:
        """Render a run as one HTML page, piece by piece."""
        request = bench_pb2.ReportRequest(
            run_id=run_id, compare_run_ids=compare_run_ids, group_by=group_by
        )
        return self._content("Report", request, bench_pb2.ReportResponse)

    def export(
        self,
        run_id: str,
        format: str,
        *,
        group_by: Sequence[str] = (),
        with_texts: bool = False,
        system: str = "",
    ) -> Iterator[bytes]:
        """Write a run as a file, piece by piece; the format `run` is for `import_run`.

        `with_texts` adds the texts of examples and answers to csv, jsonl and parquet; `system` says
        whose log to write in the format `inspect`.
        """
        request = bench_pb2.ExportRequest(
            run_id=run_id, format=format, group_by=group_by, with_texts=with_texts, system=system
        )
        return self._content("Export", request, bench_pb2.ExportResponse)

    def import_run(
        self, content: Iterable[bytes], *, new_id: bool = False
    ) -> tuple[bench_pb2.Run, bool]:
        """Store a run that `export` wrote; return it, and whether it is new there."""
        method = self._channel.stream_unary(
            "/cbench.v1.Bench/Import",
            request_serializer=bench_pb2.ImportRequest.SerializeToString,
            response_deserializer=bench_pb2.ImportResponse.FromString,
        )
        try:
            response = method(
                bench_pb2.ImportRequest(content=piece, new_id=new_id) for piece in _cut(content)
            )
        except grpc.RpcError as error:
            raise self._failure(error, "Import") from None
        return response.run, not response.already_stored

    def _content(self, name: str, request: Message, response_type: Any) -> Iterator[bytes]:
        has_begun = False
        while True:
            pieces = self._stream(name, request, response_type)
            try:
                for piece in pieces:
                    has_begun = True
                    yield piece.content
                return
            except grpc.RpcError as error:
                if has_begun or not self._is_asked_elsewhere(name, error):
                    raise self._failure(error, name) from None
            finally:
                pieces.cancel()


def _cut(content: Iterable[bytes]) -> Iterator[bytes]:
    for part in content:
        for start in range(0, len(part), _PIECE_BYTES):
            yield part[start : start + _PIECE_BYTES]
