"""`cbench memory run`: evaluate memory systems on conversations."""

import argparse
import os

from cbench_server.cli import options
from cbench_server.cli.commands.run import run
from cbench_server.cli.connect import server_of
from cbench_server.cli.exits import UsageError
from cbench_server.cli.judge import add_judge_flags
from cbench_server.cli.models import add_model_flags
from cbench_server.cli.run_files.arguments import add_file_flags, fill_in
from cbench_server.cli.sweeps import add_sweep_flag
from cbench_server.cli.values import names, positive_int

_EXAMPLES = """\
examples:
  cbench memory run --builtin bm25 --builtin last-n --dataset mini-memory
  cbench memory run --system localhost:50061 --dataset locomo -n 2 --qa-types temporal
  cbench memory run --builtin full-history --reader http://localhost:8080 --budget 4000
  cbench memory --system naive --relay http://localhost:8080 --dataset mini-memory
"""
# What context-bench calls it: the whole conversation, read by the model at the relay.
_NAIVE = "naive", "full-history"


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags, which may stand before or after `run`, or without it."""
    parser.set_defaults(handler=memory_run)
    # First of all, because the name of an action is made from a usage that is set.
    actions = parser.add_subparsers(metavar="ACTION", dest="action")
    _add_run(parser)
    action = options.add_action(
        actions, "run", memory_run, "Feed conversations to memory systems and ask about them"
    )
    _add_run(action)
    options.inherit_flags(action)


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.usage = "cbench memory [run] --system TARGET --dataset NAME [flags]"
    parser.epilog = f"{_EXAMPLES}\n{options.EXIT_CODE_HELP}"
    parser.set_defaults(
        kind="memory",
        as_transcript=False,
        expose_references=False,
        reference_fields=[],
        reuse=False,
        controls=None,
        direct=None,
        asked_again=None,
    )
    systems = parser.add_argument_group("memory systems, at least one, each flag repeatable")
    unfit = ("--proxy", "--predictions")
    where = {flag: text for flag, text in options.SYSTEMS.items() if flag not in unfit}
    where["--system"] = (
        "TARGET[/NAME]|NAME",
        "a system served at HOST:PORT or unix:/PATH, in any language; or a built-in one by its "
        "name, where naive is full-history",
    )
    options.add_systems(systems, where, "the --reader and the judge")
    add_sweep_flag(systems)
    systems.add_argument(
        "--relay",
        metavar="URL",
        help="an OpenAI-compatible endpoint that both answers and judges: short for --reader URL "
        "--judge-url URL --judge-unqualified",
    )
    systems.add_argument(
        "--api-key",
        metavar="KEY",
        help="the key for the model; better passed in OPENAI_API_KEY; only without --server",
    )
    examples = parser.add_argument_group("conversations (default: --dataset locomo)")
    options.add_examples(examples, "conversations")
    examples.add_argument(
        "--qa-types",
        metavar="TYPE,...",
        dest="question_types",
        action="extend",
        type=names,
        default=[],
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
    options.add_scoring(parser.add_argument_group("scoring"))
    add_model_flags(parser)
    add_judge_flags(parser)
    conduct = parser.add_argument_group("conduct of the run")
    options.add_conduct(conduct, "10m")
    options.add_dry_run(conduct)
    options.add_run_output(parser, "; jsonl prints rows as they are made")
    add_file_flags(parser)
    options.add_server_flags(parser)


def memory_run(args: argparse.Namespace) -> int:
    """Do what `cbench run` does, on conversations."""
    fill_in(args)
    args.datasets = args.datasets or ["locomo"]
    if args.relay:
        args.reader = args.reader or args.relay
        if not args.judge_url:
            # The model that answers judges itself, as in context-bench: what it says is marked.
            args.judge_url, args.judge_unqualified = [args.relay], True
    if args.api_key:
        if server_of(args):
            raise UsageError(
                "--api-key only works without --server: a daemon takes keys from its own "
                "configuration. Name one with --reader-credential and --judge-credential."
            )
        # Where a daemon inside this process looks for the user's own key.
        os.environ["OPENAI_API_KEY"] = args.api_key
    _name_systems(args)
    return run(args)


def _name_systems(args: argparse.Namespace) -> None:
    """Take a --system without an address for a built-in one, and let naive keep its name."""
    found = []
    for place, (kind, value) in enumerate(args.systems or []):
        if kind == "system" and not any(sign in value for sign in ":/"):
            kind = "builtin"
            if value == _NAIVE[0]:
                value = _NAIVE[1]
                if len(args.name) <= place:
                    unnamed = [""] * (place - len(args.name))
                    args.name = [*args.name, *unnamed, _NAIVE[0]]
        found.append((kind, value))
    args.systems = found
