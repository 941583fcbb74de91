"""The flags of `cbench run` and `cbench memory run`."""

from collections.abc import Mapping
from typing import Any

from cbench_server.cli.judge_flags import add_judge_flags
from cbench_server.cli.parser import Subparsers, command, exit_code_help
from cbench_server.cli.values import (
    AppendSystem,
    duration,
    label,
    names,
    number,
    option,
    owned_option,
    positive_int,
    whole_number,
)

DEFAULT_MODEL = "claude-haiku-4-5-20251001"

OUTPUTS = ("table", "json", "jsonl", "csv", "markdown", "html")

_EXAMPLES = """\
examples:
  cbench run --system localhost:50061 --dataset hotpotqa -n 200
  cbench run --builtin identity --builtin truncate-head --dataset long-notes
  cbench run --launch "python my_system.py" --dataset my-examples.jsonl --output csv > rows.csv
"""

_MEMORY_EXAMPLES = """\
examples:
  cbench memory run --builtin bm25 --builtin last-n --dataset mini-memory
  cbench memory run --system localhost:50061 --dataset locomo -n 2 --qa-types temporal
  cbench memory run --builtin full-history --reader http://localhost:8080 --budget 4000
"""

_WHERE = {
    "--system": (
        "TARGET[/NAME]",
        "a system served at HOST:PORT or unix:/PATH, in any language",
    ),
    "--proxy": ("URL", "an OpenAI-compatible endpoint, without /v1/chat/completions"),
    "--builtin": ("NAME", "a built-in or registered system; see: cbench systems"),
    "--attached": ("NAME", "a system that has attached itself to the daemon"),
    "--launch": ("COMMAND", "start a system that says where it listens; stop it afterwards"),
}


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
    parser.set_defaults(kind="process", budget=None, question_types=())
    systems = parser.add_argument_group("systems, at least one, each flag repeatable")
    add_systems(systems, _WHERE)
    _add_model(systems, "each --proxy")
    examples = parser.add_argument_group("examples, at least one --dataset")
    add_examples(examples, "examples")
    _add_references(examples)
    add_scoring(parser.add_argument_group("scoring"))
    add_judge_flags(parser)
    conduct = parser.add_argument_group("conduct of the run")
    add_conduct(conduct, "60s")
    conduct.add_argument(
        "--reuse",
        action="store_true",
        help="take answers from earlier runs where the same version of a system was given the "
        "same example and options; a system without a version is always asked",
    )
    add_output(parser)
    add_server_flags(parser)


def add_memory_run(commands: Subparsers, add_server_flags: Any) -> None:
    """Add `cbench memory run`."""
    parser = command(
        commands,
        "run",
        "run:run",
        "Feed conversations to memory systems and ask about them",
        usage="cbench memory run --system TARGET --dataset NAME [flags]",
        epilog=f"{_MEMORY_EXAMPLES}\n{exit_code_help()}",
    )
    parser.set_defaults(kind="memory", expose_references=False, reference_fields=[], reuse=False)
    systems = parser.add_argument_group("memory systems, at least one, each flag repeatable")
    add_systems(systems, {kind: text for kind, text in _WHERE.items() if kind != "--proxy"})
    _add_model(systems, "the --reader and the judge")
    examples = parser.add_argument_group("conversations (default: --dataset locomo)")
    add_examples(examples, "conversations")
    examples.add_argument(
        "--qa-types",
        metavar="TYPE,...",
        dest="question_types",
        type=names,
        default=(),
        help="only questions of these types, such as temporal,multi_hop; abstention means those "
        "without an answer (default: all)",
    )
    examples.add_argument(
        "--budget",
        metavar="TOKENS",
        type=positive_int,
        help="the most remembered text a system may hand to a model for one question "
        "(default: no limit)",
    )
    add_scoring(parser.add_argument_group("scoring"))
    add_judge_flags(parser)
    add_conduct(parser.add_argument_group("conduct of the run"), "10m")
    add_output(parser)
    add_server_flags(parser)


def add_output(parser: Any) -> None:
    """Add the flags that say what to print."""
    output = parser.add_argument_group("output")
    output.add_argument(
        "--output",
        choices=OUTPUTS,
        default="table",
        help="what to print on stdout; jsonl prints rows as they are made (default: table)",
    )
    output.add_argument("--quiet", action="store_true", help="show no progress on stderr")


def add_systems(group: Any, where: Mapping[str, tuple[str, str]]) -> None:
    """Add the flags that name systems, found in the ways of `where`, and their reader."""
    group.set_defaults(systems=None)
    for flag, (metavar, text) in where.items():
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


def _add_model(group: Any, where: str) -> None:
    group.add_argument(
        "--model",
        default=DEFAULT_MODEL,
        help=f"the model to ask for at {where} (default: {DEFAULT_MODEL})",
    )


def add_examples(group: Any, things: str) -> None:
    """Add the flags that choose examples, or other `things`."""
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
        help=f"at most this many {things} of each dataset (default: all)",
    )
    group.add_argument(
        "--shuffle",
        action="store_true",
        help=f"take the {things} in an order drawn by --seed; reads each dataset to its end first",
    )
    group.add_argument(
        "--where",
        metavar="FIELD=VALUE",
        type=label,
        action="append",
        default=[],
        help=f"only {things} whose FIELD, as text, is VALUE; repeatable, all must hold",
    )
    group.add_argument("--split", metavar="NAME", help="another split than the dataset's usual one")
    group.add_argument(
        "--revision", metavar="REV", help="read this commit, tag or branch from the hub"
    )
    group.add_argument(
        "--skip-bad-lines",
        action="store_true",
        help="leave out the lines of a file that cannot be read, and say which",
    )


def _add_references(group: Any) -> None:
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


def add_evaluators(group: Any, help_text: str) -> None:
    """Add the flags that name evaluators, and their settings."""
    group.add_argument(
        "--evaluator",
        metavar="NAME[@HOST:PORT]",
        dest="evaluators",
        action="append",
        default=[],
        help=help_text,
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


def add_scoring(group: Any) -> None:
    """Add the flags that say how rows are scored."""
    add_evaluators(
        group, "apply this evaluator as well, served elsewhere if @HOST:PORT follows; repeatable"
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


def add_conduct(group: Any, timeout: str) -> None:
    """Add the flags that say how the run goes about it; `timeout` is the usual one of a call."""
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
        help=f"how long a system has for one call, such as 30s or 2m (default: {timeout})",
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
    add_labels(group, "a label shown with the run; repeatable")


def add_labels(group: Any, help_text: str) -> None:
    """Add `--label`, which is repeatable."""
    group.add_argument(
        "--label",
        metavar="KEY=VALUE",
        dest="labels",
        type=label,
        action="append",
        default=[],
        help=help_text,
    )
