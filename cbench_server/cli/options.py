"""Flags that several commands share."""

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from cbench_server.cli.bridge_flags import add_bridge_flags
from cbench_server.cli.connect import add_connection_flags
from cbench_server.cli.engine_flags import add_engine_flags
from cbench_server.cli.exits import EXIT_CODES
from cbench_server.cli.prices import HELP, METAVAR, add_budget, price
from cbench_server.cli.replicas import add_replicas_flag
from cbench_server.cli.values import (
    AppendSystem,
    JoinMappings,
    duration,
    label,
    mapping,
    names,
    natural_int,
    number,
    option,
    owned_option,
    positive_int,
    whole_number,
)

RUN_HELP = "a run's id, the beginning of one, or `last`"
DEFAULT_MODEL = "claude-haiku-4-5-20251001"
REPEATABLE: dict[str, Any] = {"action": "append", "default": []}

SYSTEMS = {
    "--system": (
        "TARGET[/NAME]",
        "a system served at HOST:PORT or unix:/PATH, in any language; [NAME=]A,B,C for replicas of "
        "one",
    ),
    "--proxy": ("URL|local", "an OpenAI-compatible endpoint, with or without /v1"),
    "--builtin": ("NAME", "a built-in or registered system; see: cbench systems"),
    "--attached": ("NAME", "a system that is attached to the daemon"),
    "--launch": (
        "COMMAND",
        "start a system that says where it listens, start it again if it dies, and stop it "
        "afterwards",
    ),
    "--exec": (
        "COMMAND",
        "a program that reads requests and prints answers, a JSON object per line, in any language",
    ),
    "--http": ("URL", "a web server that answers a POST of such an object"),
    "--predictions": (
        "FILE",
        "outputs that exist already, by id: a file of response or context, scored like a "
        "live system",
    ),
}

EXIT_CODE_HELP = "\n".join(
    ["exit codes:", *(f"  {code:<4}{why}" for code, why in EXIT_CODES.items())]
)

# A parser, or a group of its flags.
Flags = argparse._ActionsContainer
# argparse keeps the type of what `add_subparsers` returns to itself.
Actions = Any
Handler = Callable[[argparse.Namespace], int]


def add_action(
    actions: Actions, name: str, handler: Handler, summary: str
) -> argparse.ArgumentParser:
    """Add an action of a command, such as `delete` of `cbench runs delete`."""
    parser: argparse.ArgumentParser = actions.add_parser(
        name, help=summary, description=f"{summary}."
    )
    parser.set_defaults(handler=handler)
    return parser


def inherit_flags(parser: argparse.ArgumentParser) -> None:
    """Keep the flags given before an action, instead of the action's defaults."""
    for action in parser._actions:
        action.default = argparse.SUPPRESS


def add_run_id(parser: Flags) -> None:
    """Add the argument that names a run."""
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)


def add_output(parser: Flags, choices: tuple[str, ...] = ("table", "json"), note: str = "") -> None:
    """Add `--output`; the first choice is the default."""
    parser.add_argument(
        "--output",
        choices=choices,
        default=choices[0],
        help=f"what to print on stdout{note} (default: {choices[0]})",
    )


def add_quiet(parser: Flags) -> None:
    """Add `--quiet`."""
    parser.add_argument("--quiet", action="store_true", help="show no progress on stderr")


def add_run_output(parser: Flags, note: str = "") -> None:
    """Add the flags that say what to print of a new run."""
    output = parser.add_argument_group("output")
    output.add_argument(
        "--output",
        metavar="FORMAT",
        default="table",
        help="what to print on stdout: table, json, jsonl, csv, markdown, html, junit, parquet or "
        f"a registered reporter{note} (default: table)",
    )
    add_quiet(output)


def add_labels(parser: Flags, help_text: str) -> None:
    """Add `--label`."""
    parser.add_argument(
        "--label", metavar="KEY=VALUE", dest="labels", type=label, help=help_text, **REPEATABLE
    )


def add_server_flags(parser: Flags) -> None:
    """Add the flags that say which daemon to talk to."""
    group = add_connection_flags(parser)
    group.add_argument(
        "--import",
        metavar="MODULE",
        dest="imports",
        help="import a Python module that registers components; only without --server",
        **REPEATABLE,
    )
    group.add_argument(
        "--sandbox",
        choices=("strict", "best-effort", "off"),
        help="how strictly programs under test are isolated (default: strict); only without "
        "--server",
    )
    group.add_argument(
        "--data-dir",
        metavar="DIR",
        help="a mirror of datasets to read before the hub is asked, also from CBENCH_DATA_DIR; "
        "only without --server",
    )


def add_system_tls(parser: Flags, what: str) -> None:
    """Add the flags that secure connections to systems."""
    parser.add_argument("--system-tls", action="store_true", help=f"{what} over TLS")
    parser.add_argument(
        "--system-ca",
        metavar="FILE",
        help=f"{what} over TLS and trust the certificates in this PEM file",
    )


def add_systems(group: Flags, where: Mapping[str, tuple[str, str]], models: str) -> None:
    """Add the flags that name systems, found in the ways of `where`, and their `models`."""
    group.set_defaults(systems=None)
    for flag, (metavar, text) in where.items():
        group.add_argument(flag, metavar=metavar, action=AppendSystem, dest="systems", help=text)
    group.add_argument(
        "--name",
        metavar="NAME",
        help="the name to show; the first is for the first system, and so on",
        **REPEATABLE,
    )
    group.add_argument(
        "--option",
        metavar="[SYSTEM.]KEY=VALUE",
        type=option,
        help="a setting sent with every call to SYSTEM, or to every system that takes it, such as "
        "ratio=0.3; VALUE is JSON, else text (see: cbench systems)",
        **REPEATABLE,
    )
    group.add_argument(
        "--only-system",
        metavar="NAME",
        dest="only_systems",
        help="of the systems that a --launch serves, only those of this name; repeatable",
        **REPEATABLE,
    )
    add_replicas_flag(group)
    add_engine_flags(group)
    group.add_argument(
        "--credential",
        metavar="NAME",
        default="",
        help="the name of the credential in the daemon's configuration for each --system and "
        "--proxy (without --server, a --proxy gets OPENAI_API_KEY)",
    )
    add_system_tls(group, "connect to every --system")
    add_bridge_flags(group)
    group.add_argument(
        "--model",
        default=DEFAULT_MODEL,
        help=f"the model to ask for at {models} (default: {DEFAULT_MODEL})",
    )
    if "--proxy" not in where:
        group.set_defaults(proxy_price=[])
        return
    group.add_argument(
        "--proxy-price",
        metavar=METAVAR,
        type=price,
        help=f"of each --proxy and --direct, or one for each in that order: {HELP}",
        **REPEATABLE,
    )


def add_examples(group: Flags, things: str) -> None:
    """Add the flags that choose examples, or other `things`."""
    group.add_argument(
        "--dataset",
        metavar="NAME[:CONFIG]|hf:ORG/NAME[:CONFIG]|[ALIAS=]FILE",
        dest="datasets",
        help="a dataset (see: cbench datasets), one of the hub with --map, or a .jsonl, .json, "
        ".csv, .tsv or .parquet file (also with .gz); repeatable",
        **REPEATABLE,
    )
    group.add_argument(
        "--map",
        metavar="FIELD=PATH,...",
        dest="mapping",
        type=mapping,
        action=JoinMappings,
        default=[],
        help="where the fields are in other columns, such as context=passage,answer=gold.text[0]; "
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
        help=f"only {things} whose FIELD, as text, is VALUE; repeatable, all must hold",
        **REPEATABLE,
    )
    group.add_argument("--split", metavar="NAME", help="a split other than the dataset's usual one")
    group.add_argument(
        "--revision", metavar="REV", help="read this commit, tag or branch from the hub"
    )
    group.add_argument(
        "--skip-bad-lines",
        action="store_true",
        help="leave out the lines of a file that cannot be read, and say which",
    )


def add_evaluator_options(group: Flags, whose: str) -> None:
    """Add the settings of evaluators."""
    group.add_argument(
        "--evaluator-option",
        metavar="NAME.KEY=VALUE",
        dest="evaluator_options",
        type=owned_option,
        help=f"a setting of {whose}; repeatable",
        **REPEATABLE,
    )


def add_evaluators(group: Flags, help_text: str) -> None:
    """Add the flags that name evaluators, and their settings."""
    group.add_argument(
        "--evaluator", metavar="NAME[@HOST:PORT]", dest="evaluators", help=help_text, **REPEATABLE
    )
    add_evaluator_options(group, "an --evaluator")


def add_scoring(group: Flags) -> None:
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
        help="summarise with this metric instead of the usual set; repeatable",
        **REPEATABLE,
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
    add_group_by(group, "also give the score of each group of rows")


def add_group_by(group: Flags, what: str) -> None:
    """Add `--group-by`, which is to do `what`."""
    group.add_argument(
        "--group-by",
        metavar="FIELD",
        action="extend",
        type=names,
        default=[],
        help=f"{what}, by a field of the examples such as subject, level, length or config; "
        "repeatable",
    )


def add_dry_run(group: Flags) -> None:
    """Add the flag that asks what a run would do."""
    group.add_argument(
        "--dry-run",
        action="store_true",
        help="print the rows, calls, addresses, tokens and dollars of the run, and call nobody",
    )


def add_conduct(group: Flags, timeout: str) -> None:
    """Add the flags that say how the run is conducted; `timeout` is the default for a call."""
    group.add_argument(
        "--max-workers",
        metavar="N",
        type=positive_int,
        help="the most calls to each system, or to each of its replicas, at once (default: as "
        "many as pay, up to what its author sets, else 32)",
    )
    group.add_argument(
        "--timed-rows",
        metavar="N",
        type=natural_int,
        help="rows of each system that are timed alone, one call at a time (default: 30)",
    )
    group.add_argument(
        "--repeats",
        metavar="N",
        type=positive_int,
        help="how many times each example is given to each system (default: 1)",
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
        help="how long to wait for a system that cannot be reached or never answers (default: 10m)",
    )
    add_launch_timeout(group)
    group.add_argument(
        "--max-failures",
        metavar="N|P%",
        help="fail the run after this many failed rows, or this share of the finished rows "
        "(default: never)",
    )
    group.add_argument(
        "--seed", metavar="N", type=whole_number, help="the seed for everything random (default: 0)"
    )
    add_labels(group, "a label shown with the run; repeatable")
    add_budget(group)


def add_launch_timeout(group: Flags) -> None:
    """Add `--launch-timeout`."""
    group.add_argument(
        "--launch-timeout",
        metavar="TIME",
        type=duration,
        help="how long a launched system may take to say where it listens, such as 10m for one "
        "that loads a model (default: 2m)",
    )
