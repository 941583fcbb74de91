"""`cbench show`: show a run, its rows, or everything about one example."""

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from cbench_server.cli import options
from cbench_server.cli.connect import connect
from cbench_server.cli.exits import OK, UsageError
from cbench_server.cli.files import write_stdout
from cbench_server.cli.screen import draw, in_order, indented, print_json, render_fields
from cbench_server.cli.stored_runs import find_run, full_rows_of, grouped, rows_of
from cbench_server.cli.values import positive_int
from cbench_server.texts import numbers
from cbench_server.texts.grid import Grid, printable, printable_lines

if TYPE_CHECKING:
    from cbench_client import BenchClient
    from cbench_server.reports.report import FullRow
    from cbench_server.results import EvalRow
    from cbench_server.spec import Run

_FAILED_SHOWN = 50
_FAILED_READ = 10_000
_WHY = 300


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `cbench show`."""
    parser.set_defaults(handler=show)
    options.add_run_id(parser)
    parser.add_argument("--rows", metavar="N", type=positive_int, help="list the first N rows")
    parser.add_argument(
        "--failed",
        action="store_true",
        help="group the rows that failed by what went wrong, or list N of them with --rows",
    )
    parser.add_argument(
        "--example", metavar="ID", help="show one example: original, processed, scores, details"
    )
    parser.add_argument(
        "--scores", action="store_true", help="show the mean of every score of every evaluator"
    )
    parser.add_argument(
        "--as-file",
        action="store_true",
        help="print a run file that asks for the same, for: cbench run --config FILE",
    )
    options.add_group_by(parser, "also show the score of each group of rows")
    parser.add_argument("--system", metavar="NAME", default="", help="only rows of this system")
    options.add_output(parser)
    options.add_server_flags(parser)


def show(args: argparse.Namespace) -> int:
    """Show what was asked for."""
    from cbench_server.cli.output import print_run
    from cbench_server.cli.run_files.records import as_file
    from cbench_server.reports.stored_runs import check_system

    with connect(args) as client:
        run = find_run(client, args.run)
        if args.as_file:
            write_stdout([as_file(run)])
            return OK
        if args.system:
            check_system(run, args.system)
        if args.example is not None:
            _show_example(client, run, args)
        elif args.scores:
            _show_scores(run, args)
        elif args.rows or args.failed:
            _show_rows(client, run, args)
        else:
            shown, _ = grouped(client, run, args.group_by)
            print_run(client, shown, args.output, with_rows=False)
    return OK


def _show_scores(run: "Run", args: argparse.Namespace) -> None:
    from cbench_server.reports.scores import COUNT, MEAN, every_score

    chosen = replace(run, systems=(args.system,)) if args.system else run
    if args.output == "json":
        print_json(
            {
                system: {
                    key: value
                    for key, value in run.summary.get(system, {}).items()
                    if key.startswith((MEAN, COUNT))
                }
                for system in chosen.systems
            }
        )
    elif grid := every_score(chosen):
        print(draw(grid))
    else:
        print(f"Run {run.run_id} has no scores.")


def _show_rows(client: "BenchClient", run: "Run", args: argparse.Namespace) -> None:
    from cbench_server.reports.json_report import run_to_dict
    from cbench_server.results import row_to_dict

    listed = rows_of(client, run.run_id, failed_only=args.failed, system=args.system)
    if args.failed and not args.rows and args.output != "json":
        print(_failures(run, islice(listed, _FAILED_READ)))
        return
    rows = list(islice(listed, args.rows or _FAILED_SHOWN))
    if args.output == "json":
        print_json({"run": run_to_dict(run), "rows": [row_to_dict(row) for row in rows]})
    elif rows:
        print(draw(_rows_grid(rows, run)))
    else:
        print(f"Run {run.run_id} has no {'failed ' if args.failed else ''}rows.")


def _failures(run: "Run", rows: "Iterator[EvalRow]") -> str:
    from cbench_server.reports.failure_groups import group_failures

    groups = group_failures(rows)
    if not groups:
        return f"Run {run.run_id} has no failed rows."
    lines = []
    for group in groups:
        why = group.why if len(group.why) <= _WHY else f"{group.why[:_WHY]}…"
        lines.append((group.system, group.dataset, f"{group.count:,}", group.named, why))
    header = ("System", "Dataset", "Rows", "Examples", "Failure")
    return draw(Grid(header, tuple(lines), frozenset({1, 3, 4})))


def _context_tokens(row: "EvalRow") -> str:
    """Write what a system left of the context; nothing where that is unknown."""
    before, after = row.context_tokens_in, row.context_tokens_out
    return "" if before is None or after is None else f"{before:,} → {after:,}"


def _rows_grid(rows: "list[EvalRow]", run: "Run") -> Grid:
    from cbench_server.reports.judges import with_mark
    from cbench_server.reports.row_columns import cost_line

    has_failures = any(row.failure for row in rows)
    has_costs = any(cost_line(row) for row in rows)
    header: tuple[str, ...] = ("System", "Dataset", "Example", "Score", "Tokens", "Latency")
    header += ("Cost",) if has_costs else ()
    lines = []
    for row in rows:
        name = with_mark(row.score_name, run) if row.score_name else ""
        score = f"{name} {numbers.score(row.score)}" if name else ""
        why = f"{row.failure.reason}: {row.failure.message}" if row.failure else ""
        tokens = _context_tokens(row) or numbers.MISSING
        example = str(row.example_id) + (f" #{row.repeat + 1}" if row.repeat else "")
        cells: tuple[str, ...] = (
            row.system,
            row.dataset,
            example,
            score,
            tokens,
            numbers.seconds(row.call_seconds),
        )
        cells += (cost_line(row),) if has_costs else ()
        lines.append((*cells, why) if has_failures else cells)
    if has_failures:
        header = (*header, "Failure")
    return Grid(header, tuple(lines), frozenset({1, 2, 3, 6 + has_costs}))


def _show_example(client: "BenchClient", run: "Run", args: argparse.Namespace) -> None:
    from cbench_server.reports.judges import figure_notes
    from cbench_server.results import row_to_dict

    found = list(_rows_of_example(client, run, args))
    if not found:
        raise UsageError(
            f'run {run.run_id} has no row for example "{args.example}". '
            f"List some with: cbench show {run.run_id} --rows 20"
        )
    if args.output == "json":
        print_json([{**row_to_dict(row), "original": original or {}} for row, original in found])
        return
    first, known = found[0]
    original = in_order(known or {})
    print(f"Example {printable(args.example)} of {printable(first.dataset)}")
    print(render_fields(original))
    for row, _ in found:
        print()
        print(_answer(row, original, run))
    for note in figure_notes(run, {name for row, _ in found for name in row.scores}):
        print(f"\n{printable(note)}")


def _rows_of_example(
    client: "BenchClient", run: "Run", args: argparse.Namespace
) -> "Iterator[FullRow]":
    """Find the rows of an example without their texts, then read those in full."""
    wanted = {
        _key(row)
        for row in rows_of(client, run.run_id, system=args.system)
        if str(row.example_id) == args.example
    }
    for system in run.systems:
        left = {key for key in wanted if key[0] == system}
        if not left:
            continue
        for row, original in full_rows_of(client, run.run_id, system):
            if _key(row) in left:
                left.remove(_key(row))
                yield row, original
            if not left:
                break


def _key(row: "EvalRow") -> tuple[str, int, int]:
    return row.system, row.ordinal, row.repeat


def _answer(row: "EvalRow", original: Mapping[str, Any], run: "Run") -> str:
    from cbench_server.reports.judges import with_mark
    from cbench_server.reports.row_columns import cost_line
    from cbench_server.results import strict_json

    title = f"— {row.system}" + (f", repeat {row.repeat + 1}" if row.repeat else "")
    lines = [printable(title)]
    if row.failure:
        lines.append(
            printable(
                f"  failed ({row.failure.origin}, {row.failure.reason}): {row.failure.message}"
            )
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
        mark = "  (primary)" if name == row.score_name else ""
        shown = printable(with_mark(name, run))
        lines.append(f"  {shown} = {numbers.plain(value)}{mark}")
    for evaluator, details in row.details.items():
        lines.append(f"  {printable(evaluator)}: {printable(strict_json(details, None))}")
    for evaluator, failure in row.evaluator_failures.items():
        lines.append(f"  {printable(evaluator)} failed: {printable(failure.message)}")
    known = _context_tokens(row)
    tokens = f"context {known} tokens, " if known else ""
    tokens += f"all texts {row.input_tokens:,} → {row.output_tokens:,} tokens"
    attempts = f"{row.attempts} attempt{'' if row.attempts == 1 else 's'}"
    lines.append(f"  {tokens}, {numbers.seconds(row.call_seconds)}, {attempts}")
    if cost := cost_line(row):
        lines.append(f"  cost: {printable(cost)}")
    if row.replica:
        lines.append(f"  replica {row.replica}")
    if row.traceparent:
        lines.append(f"  trace {row.traceparent.split('-')[1]}")
    return "\n".join(lines)
