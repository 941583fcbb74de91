"""`cbench memory run`: evaluate memory systems on conversations."""

import argparse

from cbench_server.cli import options
from cbench_server.cli.commands.run import run
from cbench_server.cli.judge import add_judge_flags
from cbench_server.cli.models import add_model_flags
from cbench_server.cli.values import names, positive_int

_EXAMPLES = """\
examples:
  cbench memory run --builtin bm25 --builtin last-n --dataset mini-memory
  cbench memory run --system localhost:50061 --dataset locomo -n 2 --qa-types temporal
  cbench memory run --builtin full-history --reader http://localhost:8080 --budget 4000
"""


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add `run` and its flags."""
    actions = parser.add_subparsers(metavar="ACTION", dest="action")
    parser = options.add_action(
        actions, "run", memory_run, "Feed conversations to memory systems and ask about them"
    )
    parser.usage = "cbench memory run --system TARGET --dataset NAME [flags]"
    parser.epilog = f"{_EXAMPLES}\n{options.EXIT_CODE_HELP}"
    parser.set_defaults(kind="memory", expose_references=False, reference_fields=[], reuse=False)
    parser.set_defaults(controls=None)
    systems = parser.add_argument_group("memory systems, at least one, each flag repeatable")
    unfit = ("--proxy", "--predictions")
    where = {flag: text for flag, text in options.SYSTEMS.items() if flag not in unfit}
    options.add_systems(systems, where, "the --reader and the judge")
    examples = parser.add_argument_group("conversations (default: --dataset locomo)")
    options.add_examples(examples, "conversations")
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
    options.add_scoring(parser.add_argument_group("scoring"))
    add_model_flags(parser)
    add_judge_flags(parser)
    options.add_conduct(parser.add_argument_group("conduct of the run"), "10m")
    options.add_run_output(parser, "; jsonl prints rows as they are made")
    options.add_server_flags(parser)


def memory_run(args: argparse.Namespace) -> int:
    """Do what `cbench run` does, on conversations."""
    args.datasets = args.datasets or ["locomo"]
    return run(args)
