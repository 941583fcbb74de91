"""The flags of `cbench run`."""

from typing import Any

from cbench_server.cli.judge_flags import add_judge_flags
from cbench_server.cli.parser import Subparsers, command, exit_code_help
from cbench_server.cli.values import (
    AppendSystem,
    duration,
    label,
    number,
    option,
    owned_option,
    positive_int,
    whole_number,
)

DEFAULT_MODEL = "claude-haiku-4-5-20251001"

OUTPUTS = ("table", "json", "jsonl", "csv", "markdown")

_EXAMPLES = """\
examples:
  cbench run --system localhost:50061 --dataset hotpotqa -n 200
  cbench run --builtin identity --builtin truncate-head --dataset long-notes
  cbench run --launch "python my_system.py" --dataset my-examples.jsonl --output csv > rows.csv
"""


def add_run(commands: Subparsers, add_server_flags: Any) -> None:
    """Add `cbench run`."""
    parser = command(
        commands,
        "run",
        "run:run",
        "Evaluate one or more systems on one or more datasets",
        usage="cbench run --system TARGET --dataset NAME [flags]",
        epilog=f"{_EXAMPLES}\n{exit_code_help()}",
    )
    _add_systems(parser.add_argument_group("systems, at least one, each flag repeatable"))
    _add_examples(parser.add_argument_group("examples, at least one --dataset"))
    _add_scoring(parser.add_argument_group("scoring"))
    add_judge_flags(parser)
    _add_conduct(parser.add_argument_group("conduct of the run"))
    output = parser.add_argument_group("output")
    output.add_argument(
        "--output",
        choices=OUTPUTS,
        default="table",
        help="what to print on stdout; jsonl prints rows as they are made (default: table)",
    )
    output.add_argument("--quiet", action="store_true", help="show no progress on stderr")
    add_server_flags(parser)


def _add_systems(group: Any) -> None:
    group.set_defaults(systems=None)
    for flag, metavar, text in (
        (
            "--system",
            "TARGET[/NAME]",
            "a system served at HOST:PORT or unix:/PATH, in any language",
        ),
        ("--proxy", "URL", "an OpenAI-compatible endpoint, without /v1/chat/completions"),
        ("--builtin", "NAME", "a control or registered system; see: cbench systems"),
        ("--attached", "NAME", "a system that has attached itself to the daemon"),
        ("--launch", "COMMAND", "start a system that says where it listens; stop it afterwards"),
    ):
        group.add_argument(flag, metavar=metavar, action=AppendSystem, dest="systems", help=text)
    group.add_argument(
        "--name",
        metavar="NAME",
        action="append",
        default=[],
        help="the name to show; the first is for the first system, and so on",
    )
    group.add_argument(
        "--option",
        metavar="[SYSTEM.]KEY=VALUE",
        type=option,
        action="append",
        default=[],
        help="a setting sent with every call, such as ratio=0.3; VALUE is JSON, else text",
    )
    group.add_argument(
        "--model",
        default=DEFAULT_MODEL,
        help=f"the model to ask for at each --proxy (default: {DEFAULT_MODEL})",
    )
    group.add_argument(
        "--reader",
        metavar="URL",
        help="an OpenAI-compatible endpoint that answers for systems which return no response",
    )
    group.add_argument("--reader-model", metavar="MODEL", help="its model (default: --model)")
    group.add_argument(
        "--credential",
        metavar="NAME",
        default="",
        help="the credential, of the daemon's configuration, for each --system and --proxy "
        "(without --server a --proxy gets OPENAI_API_KEY by itself)",
    )
    group.add_argument(
        "--reader-credential", metavar="NAME", default="", help="likewise, for the --reader"
    )
    group.add_argument(
        "--system-tls", action="store_true", help="connect to every --system over TLS"
    )
    group.add_argument(
        "--system-ca", metavar="FILE", help="likewise, trusting the certificates in this PEM file"
    )


def _add_examples(group: Any) -> None:
    group.add_argument(
        "--dataset",
        metavar="NAME[:CONFIG]|FILE",
        dest="datasets",
        action="append",
        default=[],
        help="a dataset (see: cbench datasets) or a .jsonl, .jsonl.gz, .csv or .parquet file; "
        "repeatable",
    )
    group.add_argument(
        "-n",
        "--max-examples",
        metavar="N",
        type=positive_int,
        help="at most this many examples of each dataset (default: all)",
    )
    group.add_argument(
        "--shuffle",
        action="store_true",
        help="take the examples in an order drawn by --seed; reads each dataset to its end first",
    )
    group.add_argument(
        "--where",
        metavar="FIELD=VALUE",
        type=label,
        action="append",
        default=[],
        help="only examples whose FIELD, as text, is VALUE; repeatable, all must hold",
    )
    group.add_argument("--split", metavar="NAME", help="another split than the dataset's usual one")
    group.add_argument(
        "--revision", metavar="REV", help="read this commit, tag or branch from the hub"
    )
    group.add_argument(
        "--skip-bad-lines",
        action="store_true",
        help="leave out the lines of a FILE that cannot be read, and say which",
    )
    group.add_argument(
        "--expose-references",
        action="store_true",
        help="let systems see the expected answers; for debugging only",
    )
    group.add_argument(
        "--reference-field",
        metavar="FIELD",
        dest="reference_fields",
        action="append",
        default=[],
        help="a further field to keep from systems; repeatable",
    )


def _add_scoring(group: Any) -> None:
    group.add_argument(
        "--evaluator",
        metavar="NAME[@HOST:PORT]",
        dest="evaluators",
        action="append",
        default=[],
        help="apply this evaluator as well, served elsewhere if @HOST:PORT follows; repeatable",
    )
    group.add_argument(
        "--evaluator-option",
        metavar="NAME.KEY=VALUE",
        dest="evaluator_options",
        type=owned_option,
        action="append",
        default=[],
        help="a setting of an --evaluator; repeatable",
    )
    group.add_argument(
        "--only-evaluators",
        action="store_true",
        help="apply each --evaluator instead of what the datasets ask for",
    )
    group.add_argument(
        "--metric",
        metavar="NAME",
        dest="metrics",
        action="append",
        default=[],
        help="summarise with this metric instead of the usual set; repeatable",
    )
    group.add_argument(
        "--score-field", metavar="NAME", help="the score that counts (default: the dataset's own)"
    )
    group.add_argument(
        "--threshold",
        metavar="X",
        type=number,
        help="the score from which a row passes (default: 0.7)",
    )
    group.add_argument(
        "--tokenizer",
        metavar="NAME",
        help="how tokens are counted: cl100k_base, o200k_base or whitespace (default: cl100k_base)",
    )


def _add_conduct(group: Any) -> None:
    group.add_argument(
        "--max-workers",
        metavar="N",
        type=positive_int,
        help="calls to each system at once (default: what the system announces)",
    )
    group.add_argument(
        "--repeats",
        metavar="N",
        type=positive_int,
        help="how often each example is given to each system (default: 1)",
    )
    group.add_argument(
        "--timeout",
        metavar="TIME",
        type=duration,
        help="how long a system has for one example, such as 30s or 2m (default: 60s)",
    )
    group.add_argument(
        "--wait",
        metavar="TIME",
        type=duration,
        help="how long to wait for a system that is away (default: 10m)",
    )
    group.add_argument(
        "--max-failures",
        metavar="N|P%",
        help="fail the run after this many failed rows, or this share of them (default: never)",
    )
    group.add_argument(
        "--seed", metavar="N", type=whole_number, help="seeds whatever is random (default: 0)"
    )
    group.add_argument(
        "--label",
        metavar="KEY=VALUE",
        dest="labels",
        type=label,
        action="append",
        default=[],
        help="a label shown with the run; repeatable",
    )
