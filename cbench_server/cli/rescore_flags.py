"""The flags of `cbench rescore`."""

from typing import Any

from cbench_server.cli.judge_flags import add_judge_flags
from cbench_server.cli.parser import Subparsers, command, exit_code_help
from cbench_server.cli.run_flags import DEFAULT_MODEL, add_evaluators, add_labels

_EXAMPLES = """\
examples:
  cbench rescore last --evaluator summarization-quality
  cbench rescore last --judge-url http://localhost:8080 --judge-model my-judge
  cbench rescore last --references corrected.jsonl
"""


def add_rescore(commands: Subparsers, add_server_flags: Any) -> None:
    """Add `cbench rescore`."""
    parser = command(
        commands,
        "rescore",
        "rescore:rescore",
        "Score the stored answers of a run again, without calling any system",
        epilog=f"{_EXAMPLES}\n{exit_code_help()}",
    )
    parser.add_argument("run", metavar="RUN", help="a run's id, the beginning of one, or `last`")
    scoring = parser.add_argument_group("scoring (default: as the run was scored)")
    add_evaluators(scoring, "apply this evaluator instead of those of the run; repeatable")
    scoring.add_argument(
        "--references",
        metavar="FILE",
        help="a .jsonl, .jsonl.gz, .csv or .parquet file whose fields replace those of the "
        "examples with the same `id`, such as corrected answers",
    )
    scoring.add_argument(
        "--skip-bad-lines",
        action="store_true",
        help="leave out the lines of that file which cannot be read, and say which",
    )
    add_judge_flags(parser)
    parser.add_argument(
        "--model", default=DEFAULT_MODEL, help="the judge's model, unless it has one"
    )
    add_labels(parser, "a label shown with the new run; repeatable")
    output = parser.add_argument_group("output")
    output.add_argument(
        "--output",
        choices=("table", "json", "csv", "markdown", "html"),
        default="table",
        help="what to print on stdout (default: table)",
    )
    output.add_argument("--quiet", action="store_true", help="show no progress on stderr")
    add_server_flags(parser)
