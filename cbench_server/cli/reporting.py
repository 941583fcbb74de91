"""A stored run as a reporter wants it, and its systems compared."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from cbench_client import BenchClient, convert
from cbench_server.cli.decode import row_of
from cbench_server.cli.run_differences import run_differences
from cbench_server.comparison import Comparison
from cbench_server.reports.report import FullRow, Report, compared_sides
from cbench_server.results import EvalRow
from cbench_server.spec import Run


def report_from(client: BenchClient, run: Run, *, others: Sequence[Run] = ()) -> Report:
    """Read a run from the daemon; its systems are compared with each other and the others'."""

    def rows() -> Iterator[EvalRow]:
        return map(row_of, client.rows(run.run_id))

    def full_rows(system: str) -> Iterator[FullRow]:
        messages = client.rows(
            run.run_id, include_processed=True, include_original=True, system=system
        )
        for message in messages:
            known = message.HasField("original")
            yield row_of(message), convert.example_from_proto(message.original) if known else None

    return Report(run, rows, full_rows, lambda: comparison(client, [run, *others]))


def comparison(client: BenchClient, runs: Sequence[Run]) -> Comparison | None:
    """Compare every system of every run with every other, if there is anything to compare.

    Raises InvalidInput where several runs were named and nothing can be compared.
    """
    sides: dict[str, Iterable[EvalRow]] = {}
    for run in runs:
        for system in run.systems:
            name = system if system not in sides else f"{system} ({run.run_id})"
            sides[name] = map(row_of, client.rows(run.run_id, system=system))
    found = compared_sides(sides, runs[0].spec, must=len(runs) > 1)
    notes = [note for other in runs[1:] for note in run_differences(runs[0], other)]
    return replace(found, notes=(*dict.fromkeys(notes), *found.notes)) if found else None
