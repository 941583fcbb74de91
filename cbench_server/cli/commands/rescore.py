"""`cbench rescore`: score the stored answers of a run as a new run."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from cbench_server.cli import options
from cbench_server.cli.connect import connect
from cbench_server.cli.exits import UsageError
from cbench_server.cli.judge import add_judge_flags
from cbench_server.cli.likelihood import add_likelihood_flags
from cbench_server.cli.local_models import local_models
from cbench_server.cli.outcome import inform
from cbench_server.cli.stored_runs import find_run

if TYPE_CHECKING:
    from cbench_client import BenchClient
    from cbench_server.spec import Run
    from cbench_server.types import Example

_EXAMPLES = """\
examples:
  cbench rescore last --evaluator summarization-quality
  cbench rescore last --judge-url http://localhost:8080 --judge-model my-judge
  cbench rescore last --references corrected.jsonl
  cbench rescore last --references swebench-report.json
  cbench rescore last --references annotations.json
"""


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `cbench rescore`."""
    parser.epilog = f"{_EXAMPLES}\n{options.EXIT_CODE_HELP}"
    parser.set_defaults(handler=rescore)
    options.add_run_id(parser)
    scoring = parser.add_argument_group("scoring (default: as the run was scored)")
    options.add_evaluators(scoring, "apply this evaluator instead of those of the run; repeatable")
    scoring.add_argument(
        "--references",
        metavar="FILE",
        help="a .jsonl, .json, .csv, .tsv or .parquet file (also with .gz) whose fields replace "
        "those of the examples with the same `id`, such as corrected answers; or a report of the "
        "SWE-bench harness, or AlpacaEval's annotations.json",
    )
    scoring.add_argument(
        "--skip-bad-lines",
        action="store_true",
        help="leave out the lines of the --references that cannot be read, and say which",
    )
    add_judge_flags(parser)
    add_likelihood_flags(parser)
    parser.add_argument(
        "--model",
        default=options.DEFAULT_MODEL,
        help=f"the model of a judge without --judge-model (default: {options.DEFAULT_MODEL})",
    )
    options.add_labels(parser, "a label shown with the new run; repeatable")
    options.add_run_output(parser)
    options.add_server_flags(parser)


def _by_id(
    client: "BenchClient", parent: "Run", annotations: "dict[str, Example]", path: Path
) -> "list[Example]":
    """Return annotations of instructions as references, by the ids of the run's examples."""
    from cbench_server.cli.stored_runs import full_rows_of

    found = [
        {"id": original["id"], **annotations[instruction]}
        for system in parent.ranked[:1]
        for _, original in full_rows_of(client, parent.run_id, system)
        if original and (instruction := str(original.get("context"))) in annotations
    ]
    if not found:
        raise UsageError(f"{path} annotates no instruction of run {parent.run_id}.")
    return found


def _sent(client: "BenchClient", args: argparse.Namespace, parent: "Run") -> str:
    """Upload the references, and return their digest."""
    from cbench_server.cli.uploads import upload
    from cbench_server.datasets.readers.alpaca_annotations import alpaca_annotations
    from cbench_server.datasets.readers.harness_report import harness_report

    path = Path(args.references)
    reader, found = "swebench", harness_report(path) or []
    if annotations := alpaca_annotations(path):
        reader, found = "alpaca-eval", _by_id(client, parent, annotations, path)
    if not found:
        sent = upload(client, args.references, None, skip_bad_lines=args.skip_bad_lines)
        return str(sent["upload"])
    if len(parent.ranked) > 1:
        raise UsageError(
            f"{path} is a report on one system, and the run has {', '.join(parent.ranked)}. "
            "Run each of them by itself."
        )
    args.evaluators = args.evaluators or [reader]
    digest, _ = client.upload(found)
    return digest


def rescore(args: argparse.Namespace) -> int:
    """Rescore a finished run as a new run, follow it, print it."""
    from cbench_server.cli.follow import conclude
    from cbench_server.cli.launches import launching
    from cbench_server.cli.output import check_output
    from cbench_server.cli.spec import evaluators_of
    from cbench_server.cli.uploads import upload_judge_files

    if not args.imports:
        check_output(args)
    with (
        local_models(args) as models,
        launching(quiet=args.quiet, patience=None) as launches,
        connect(args, evaluates=True) as client,
    ):
        launches.models = models
        # Once more, now that --import has registered its reporters.
        check_output(args)
        parent = find_run(client, args.run)
        # Conversations have a different judge.
        args.kind = parent.spec.kind
        references = ""
        if args.references:
            references = _sent(client, args, parent)
        child = client.rescore(
            parent.run_id,
            evaluators_of(args),
            references_upload=references,
            labels=dict(args.labels),
            allow_unqualified_judges=args.judge_unqualified,
            **upload_judge_files(client, args.labels_file, args.errata),
        )
        inform(args, f"run {child.run_id} rescores {parent.run_id}")
        events = client.watch(child.run_id, include_rows=False)
        return conclude(client, events, args, run_id=child.run_id, launches=launches)
