"""`cbench judge check`: test a judge on controls made from a dataset, without a run."""

import argparse
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cbench_server.cli import options
from cbench_server.cli.exits import FAILED, OK, UsageError
from cbench_server.cli.judge import add_judge_address, judge_evaluators
from cbench_server.cli.local_models import local_models
from cbench_server.cli.screen import draw, print_json
from cbench_server.cli.values import positive_int, whole_number
from cbench_server.texts.grid import Grid

if TYPE_CHECKING:
    from cbench_server.types import Example

_EXAMPLES = """\
examples:
  cbench judge check --dataset mini-qa --judge-url http://localhost:8080 --judge-model my-judge
  cbench judge check --dataset qa.jsonl --judge-url URL --pack strict --pack lenient
"""


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add `check` and its flags."""
    actions = parser.add_subparsers(metavar="ACTION", dest="action")
    parser = options.add_action(
        actions, "check", check, "Ask a judge about answers whose verdict is known"
    )
    parser.epilog = f"{_EXAMPLES}\nexit code: 0 if every pack qualifies, 1 if one does not"
    parser.add_argument(
        "--dataset", metavar="NAME", required=True, help="a dataset NAME[:CONFIG], or a file"
    )
    parser.add_argument(
        "-n",
        "--max-examples",
        metavar="N",
        type=positive_int,
        default=400,
        help="make controls from at most this many examples (default: 400)",
    )
    parser.add_argument(
        "--seed", metavar="N", type=whole_number, default=0, help="which controls (default: 0)"
    )
    add_judge_address(parser.add_argument_group("the judge"))
    parser.add_argument(
        "--model",
        default=options.DEFAULT_MODEL,
        help=f"the model of a judge without --judge-model (default: {options.DEFAULT_MODEL})",
    )
    parser.add_argument(
        "--data-dir",
        metavar="DIR",
        default="",
        help="a mirror of datasets to read before the hub is asked",
    )
    options.add_output(parser)
    parser.set_defaults(max_cost=None, judge_unqualified=False)


def check(args: argparse.Namespace) -> int:
    """Test the judge with every pack, and print how it went."""
    import asyncio

    from cbench_server.daemon.settings import data_home
    from cbench_server.registry import registry
    from cbench_server.storage.judge_checks import JudgeCheckStore

    if not args.judge_url:
        raise UsageError("name the judge with --judge-url URL.")
    if args.data_dir:
        registry.data_dir = args.data_dir
    examples, args.kind = _read(args)
    with local_models(args):
        records = asyncio.run(_records(args, examples, JudgeCheckStore(data_home())))
    if args.output == "json":
        print_json(records)
    else:
        print(_text(records))
    return OK if all(record["qualified"] for record in records) else FAILED


async def _records(
    args: argparse.Namespace, examples: "list[Example]", checks: Any
) -> list[dict[str, Any]]:
    from cbench_server.registry import registry
    from cbench_server.runs.judging import check_judge

    records = []
    for ref in judge_evaluators(args):
        given = {name: value for name, value in ref["options"].items() if name != "credential"}
        judge = registry.create_evaluator(ref["name"], {**given, "label": ref["label"]})
        record = await check_judge(judge, examples, args.seed, checks)
        await judge.close_connections()  # type: ignore[attr-defined] # all judges have it
        records.append({"evaluator": judge.name, "dataset": args.dataset, **record})
    return records


def _read(args: argparse.Namespace) -> "tuple[list[Example], str]":
    """Return the examples, question by question, and the kind of run they are for."""
    from cbench_server.cli.spec import registered_dataset
    from cbench_server.datasets.conversations import questions
    from cbench_server.datasets.readers.files import is_file_name, iterate_file
    from cbench_server.registry import registry

    if is_file_name(args.dataset):
        found = iterate_file(Path(args.dataset), skip_bad_lines=False, on_bad_line=lambda _: None)
    else:
        named = registered_dataset(args.dataset, None)
        record = registry.dataset(named["name"])
        found = record.examples(named["config"], **record.mirror_option(registry.data_dir))
    some = list(islice(found, args.max_examples))
    if not some:
        raise UsageError(f"{args.dataset} contains no examples.")
    if "qa_pairs" not in some[0]:
        return some, "process"
    asked = questions(iter(some), label=args.dataset)
    return list(islice(asked, args.max_examples)), "memory"


def _text(records: list[dict[str, Any]]) -> str:
    kinds = list(dict.fromkeys(kind for record in records for kind in record["kinds"]))
    header = ("Judge", "Pack", *kinds, "AUC", "Qualifies")
    rows = tuple(
        (
            record["model"],
            record["pack"],
            *(_rate(record["kinds"].get(kind)) for kind in kinds),
            "-" if record.get("auc") is None else f"{record['auc']:.2f}",
            "yes" if record["qualified"] else "no",
        )
        for record in records
    )
    lines = [draw(Grid(header, rows, frozenset({0, 1})))]
    lines += [
        f"{record['model']} with pack {record['pack']}: {record['why']}"
        for record in records
        if record["why"]
    ]
    if any(record.get("few") for record in records):
        lines.append("Fewer than 100 controls of a kind decide little.")
    lines.append("Each cell: the share accepted, with its 95% interval.")
    return "\n".join(lines)


def _rate(rates: dict[str, Any] | None) -> str:
    if rates is None or not rates["asked"]:
        return "-"
    return f"{rates['rate']:.0%} [{rates['low']:.0%}, {rates['high']:.0%}]"
