"""Stored runs: found by id or `last`, read from the daemon, reported and compared."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cbench_server.cli.exits import UsageError, did_you_mean

if TYPE_CHECKING:
    from cbench_client import BenchClient
    from cbench_client._gen.cbench.v1 import bench_pb2
    from cbench_server.comparison import Comparison
    from cbench_server.reports.report import FullRow, Report
    from cbench_server.results import EvalRow
    from cbench_server.spec import Run

_SHOWN = 5
# What identifies the examples of a dataset.
_DATA = ("upload", "split", "revision", "files")


def find_run(client: "BenchClient", text: str) -> "Run":
    """Return the run with this id or the only one that begins with it, or the newest for `last`."""
    from cbench_client import Refused

    if text == "last":
        newest = next(client.list(), None)
        if newest is None:
            raise UsageError("there are no runs yet. Start one with: cbench run")
        return run_of(client.get(newest.run_id))
    try:
        return run_of(client.get(text))
    except Refused as error:
        if error.code not in ("NOT_FOUND", "INVALID_ARGUMENT"):
            raise
        found = [run.run_id for run in client.list() if run.run_id.startswith(text)]
        if len(found) > 1:
            some = ", ".join(found[:_SHOWN]) + (", ..." if len(found) > _SHOWN else "")
            raise UsageError(f'{len(found)} runs begin with "{text}": {some}.') from None
        if not found:
            raise
    return run_of(client.get(found[0]))


def run_of(message: "bench_pb2.Run") -> "Run":
    """Decode a run, with its metrics in the order in which they are shown."""
    from cbench_server.reports.columns import ordered_keys
    from cbench_server.rpc.runs import run_from_proto

    run = run_from_proto(message)
    summary = {
        system: {key: values[key] for key in ordered_keys({system: values})}
        for system, values in run.summary.items()
    }
    return replace(run, summary=summary)


def check_system(run: "Run", name: str) -> str:
    """Return a system's name if the run has it."""
    if name not in run.systems:
        hint = did_you_mean(name, run.systems) or f" It has: {', '.join(run.systems)}."
        raise UsageError(f'run {run.run_id} has no system "{name}".{hint}')
    return name


def rows_of(client: "BenchClient", run_id: str, **choice: Any) -> "Iterator[EvalRow]":
    """Read rows from the daemon, page by page; `choice` is that of `BenchClient.rows`."""
    from cbench_server.rpc.rows import row_from_proto

    return map(row_from_proto, client.rows(run_id, **choice))


def full_rows_of(client: "BenchClient", run_id: str, system: str) -> "Iterator[FullRow]":
    """Read the rows of a system with what it returned, and the original where it is known."""
    from cbench_client.messages import convert
    from cbench_server.rpc.rows import row_from_proto

    messages = client.rows(run_id, include_processed=True, include_original=True, system=system)
    for message in messages:
        known = message.HasField("original")
        original = convert.example_from_proto(message.original) if known else None
        yield row_from_proto(message), original


def report_from(client: "BenchClient", run: "Run", *, others: "Sequence[Run]" = ()) -> "Report":
    """Build the report of a run; its systems are compared with each other and with `others`."""
    from cbench_server.reports.report import Report

    return Report(
        run,
        lambda: rows_of(client, run.run_id),
        lambda system: full_rows_of(client, run.run_id, system),
        lambda: _comparison(client, [run, *others]),
    )


def _comparison(client: "BenchClient", runs: "Sequence[Run]") -> "Comparison | None":
    """Compare every system of every run with every other, if there is anything to compare.

    Raises InvalidInput where several runs were named and nothing can be compared.
    """
    sides: dict[str, Iterable[EvalRow]] = {}
    for run in runs:
        for system in run.systems:
            name = system if system not in sides else f"{system} ({run.run_id})"
            sides[name] = rows_of(client, run.run_id, system=system)
    from cbench_server.reports.report import compared_sides

    found = compared_sides(sides, runs[0], must=len(runs) > 1)
    notes = [note for other in runs[1:] for note in run_differences(runs[0], other)]
    return replace(found, notes=(*dict.fromkeys(notes), *found.notes)) if found else None


def run_differences(a: "Run", b: "Run") -> Iterator[str]:
    """Yield a note for everything but the systems that may explain a difference."""
    ours, theirs = _datasets(a), _datasets(b)
    for label in [label for label in ours if label in theirs]:
        one, other = ours[label], theirs[label]
        if any(one.get(name) != other.get(name) for name in _DATA):
            # An upload holds only the examples that -n kept, so its digest differs.
            is_cut = one.get("upload") and one.get("max_examples") != other.get("max_examples")
            what = "different data, or parts of the same" if is_cut else "different data"
            yield f"{label} was read from {what}: the same id may mean different examples."
        if one.get("evaluators") != other.get("evaluators"):
            yield f"{label} was scored by different evaluators, versions or settings."
    if _corrections(a) != _corrections(b):
        yield "The runs were scored with different references; at least one has corrected ones."
    if a.spec.reader != b.spec.reader:
        yield "The runs had different readers."
    if a.config.get("tokenizer") != b.config.get("tokenizer"):
        yield "The runs counted tokens differently."


def _corrections(run: "Run") -> list[str]:
    """Return the files of references that a run, or the runs it was rescored from, was given."""
    found: list[str] = []
    rescoring: dict[str, Any] = run.config.get("rescoring", {})
    while rescoring:
        found.append(rescoring["references_upload"])
        rescoring = rescoring.get("earlier", {})
    return [each for each in found if each]


def _datasets(run: "Run") -> dict[str, dict[str, Any]]:
    return {str(each.get("label")): each for each in run.config.get("datasets", [])}
