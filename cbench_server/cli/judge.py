"""The judge of a run: its flags, and the evaluator they describe."""

import argparse
from typing import Any

from cbench_server.cli.exits import UsageError
from cbench_server.cli.values import number, positive_int

_JUDGES = {"process": "llm-judge", "memory": "memory-judge"}
# What each flag is called as an option of the judge.
_SETTINGS = {
    "judge_model": "model",
    "judge_pack": "pack",
    "judge_repeats": "repeats",
    "judge_rpm": "rpm",
    "judge_credential": "credential",
    "max_cost": "max_cost",
}


def add_judge_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags in a separate group."""
    group = parser.add_argument_group("a judge")
    group.add_argument(
        "--judge-url",
        metavar="URL",
        help="an OpenAI-compatible endpoint whose model judges every response",
    )
    group.add_argument(
        "--judge-model", metavar="MODEL", help="the model of the judge (default: --model)"
    )
    group.add_argument(
        "--judge-pack",
        metavar="NAME",
        help="what the judge is asked: correctness or helpfulness, or memory-qa in a memory run "
        "(default: the first)",
    )
    group.add_argument(
        "--judge-repeats",
        metavar="N",
        type=positive_int,
        help="how many times each response is judged; the median counts, and judge_agreement is "
        "added (default: 1)",
    )
    group.add_argument(
        "--judge-rpm", metavar="N", type=number, help="at most this many requests per minute"
    )
    group.add_argument(
        "--judge-credential",
        metavar="NAME",
        help="the name of the credential in the daemon's configuration for the judge "
        "(without --server, it gets OPENAI_API_KEY)",
    )
    group.add_argument(
        "--judge-price",
        metavar="IN,OUT",
        type=prices,
        help="what a million tokens of prompt and reply cost, in US dollars, such as 2.5,10",
    )
    group.add_argument(
        "--max-cost",
        metavar="USD",
        type=number,
        help="the most that the judge may cost; rows beyond it get no score from it. Needs "
        "--judge-price",
    )


def prices(text: str) -> tuple[float, float]:
    """Read `IN,OUT`."""
    parts = text.split(",")
    if len(parts) != 2:
        raise argparse.ArgumentTypeError(f'"{text}" is not two prices; write them as 2.5,10.')
    return number(parts[0]), number(parts[1])


def judge_evaluators(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the judge as a reference to an evaluator; none without --judge-url."""
    given = {name: value for name in _SETTINGS if (value := getattr(args, name)) is not None}
    if not args.judge_url:
        if given or args.judge_price:
            flag = "--" + next(iter(given), "judge_price").replace("_", "-")
            raise UsageError(f"{flag} needs --judge-url URL.")
        return []
    if args.max_cost is not None and args.judge_price is None:
        raise UsageError("--max-cost needs --judge-price IN,OUT, to know what tokens cost.")
    options: dict[str, Any] = {"base_url": args.judge_url, "model": args.model}
    options |= {_SETTINGS[name]: value for name, value in given.items()}
    if args.judge_price is not None:
        options["input_price"], options["output_price"] = args.judge_price
    return [{"name": _JUDGES[args.kind], "options": options}]
