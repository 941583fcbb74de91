"""`cbench show`: a run, its rows, or all there is about one example."""

import argparse
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from cbench_client import BenchClient, convert
from cbench_client._gen.cbench.v1 import bench_pb2
from cbench_server.cli.connection import connect
from cbench_server.cli.decode import row_of, run_of
from cbench_server.cli.exits import OK, UsageError, did_you_mean
from cbench_server.cli.fields import in_order, indented, render_fields
from cbench_server.cli.naming import find_run
from cbench_server.cli.output import print_run
from cbench_server.cli.screen import draw, print_json
from cbench_server.reports import numbers
from cbench_server.reports.grid import Grid, printable, printable_lines
from cbench_server.reports.json_report import run_to_dict
from cbench_server.results import EvalRow, row_to_dict, strict_json
from cbench_server.spec import Run

_FAILED_SHOWN = 50


def show(args: argparse.Namespace) -> int:
    """Show what was asked for."""
    with connect(args) as client:
        run = run_of(client.get(find_run(client, args.run)))
        if args.system and args.system not in run.systems:
            hint = did_you_mean(args.system, run.systems) or f" It has: {', '.join(run.systems)}."
            raise UsageError(f'run {run.run_id} has no system "{args.system}".{hint}')
        if args.example is not None:
            _show_example(client, run, args)
        elif args.rows or args.failed:
            _show_rows(client, run, args)
        else:
            print_run(client, run, args.output, with_rows=False)
    return OK


def _show_rows(client: BenchClient, run: Run, args: argparse.Namespace) -> None:
    listed = client.rows(run.run_id, failed_only=args.failed, system=args.system)
    rows = [row_of(message) for message in islice(listed, args.rows or _FAILED_SHOWN)]
    if args.output == "json":
        print_json({"run": run_to_dict(run), "rows": [row_to_dict(row) for row in rows]})
    elif rows:
        print(draw(_rows_grid(rows)))
    else:
        print(f"Run {run.run_id} has no {'failed ' if args.failed else ''}rows.")


def _rows_grid(rows: list[EvalRow]) -> Grid:
    has_failures = any(row.failure for row in rows)
    header: tuple[str, ...] = ("System", "Dataset", "Example", "Score", "Tokens", "Latency")
    lines = []
    for row in rows:
        score = f"{row.primary_score} {numbers.score(row.score)}" if row.primary_score else ""
        why = f"{row.failure.reason}: {row.failure.message}" if row.failure else ""
        tokens = f"{row.input_tokens:,} → {row.output_tokens:,}"
        example = str(row.example_id) + (f" #{row.repeat + 1}" if row.repeat else "")
        cells = (row.system, row.dataset, example, score, tokens, numbers.seconds(row.latency))
        lines.append((*cells, why) if has_failures else cells)
    if has_failures:
        header = (*header, "Failure")
    return Grid(header, tuple(lines), frozenset({1, 2, 3, 6}))


def _show_example(client: BenchClient, run: Run, args: argparse.Namespace) -> None:
    found = list(_rows_of_example(client, run, args))
    if not found:
        raise UsageError(
            f'run {run.run_id} has no row for example "{args.example}". '
            f"List some with: cbench show {run.run_id} --rows 20"
        )
    if args.output == "json":
        print_json([_with_original(message) for message in found])
        return
    original = in_order(convert.example_from_proto(found[0].original))
    print(f"Example {printable(args.example)} of {printable(found[0].dataset)}")
    print(render_fields(original))
    for message in found:
        print()
        print(_answer(row_of(message), original))


def _rows_of_example(
    client: BenchClient, run: Run, args: argparse.Namespace
) -> Iterator[bench_pb2.EvalRow]:
    """Find the rows of an example: looked for lightly, then read in full."""
    wanted = {
        (row.system, row.ordinal, row.repeat)
        for row in client.rows(run.run_id, system=args.system)
        if str(convert.id_from_proto(row.example_id)) == args.example
    }
    for system in run.systems:
        left = {key for key in wanted if key[0] == system}
        if not left:
            continue
        full = client.rows(run.run_id, include_processed=True, include_original=True, system=system)
        for row in full:
            if (row.system, row.ordinal, row.repeat) in left:
                left.remove((row.system, row.ordinal, row.repeat))
                yield row
            if not left:
                break


def _with_original(message: bench_pb2.EvalRow) -> dict[str, Any]:
    original = convert.example_from_proto(message.original)
    return {**row_to_dict(row_of(message)), "original": original}


def _answer(row: EvalRow, original: Mapping[str, Any]) -> str:
    title = f"— {row.system}" + (f", repeat {row.repeat + 1}" if row.repeat else "")
    lines = [printable(title)]
    if row.failure:
        lines.append(
            f"  failed ({row.failure.origin}, {row.failure.reason}): {row.failure.message}"
        )
        if row.failure.stack_trace:
            lines.append(indented(printable_lines(row.failure.stack_trace)))
    if row.processed is not None:
        kept = [name for name in row.processed if row.processed[name] == original.get(name)]
        changed = in_order(
            {name: row.processed[name] for name in row.processed if name not in kept}
        )
        lines.append(render_fields(changed) if changed else "  changed nothing")
    for name, value in row.scores.items():
        mark = "  (primary)" if name == row.primary_score else ""
        lines.append(f"  {printable(name)} = {numbers.plain(value)}{mark}")
    for evaluator, details in row.details.items():
        lines.append(f"  {printable(evaluator)}: {printable(strict_json(details, None))}")
    for evaluator, failure in row.evaluator_failures.items():
        lines.append(f"  {printable(evaluator)} failed: {printable(failure.message)}")
    tokens = f"{row.input_tokens:,} → {row.output_tokens:,} tokens"
    attempts = f"{row.attempts} attempt{'' if row.attempts == 1 else 's'}"
    lines.append(f"  {tokens}, {numbers.seconds(row.latency)}, {attempts}")
    return "\n".join(lines)
