"""The judges of a run: their flags, and the evaluators they describe."""

import argparse
import json
from pathlib import Path
from typing import Any

from cbench_server.cli.exits import UsageError
from cbench_server.cli.files import read_text
from cbench_server.cli.options import REPEATABLE
from cbench_server.cli.prices import HELP, METAVAR, price, price_at
from cbench_server.cli.values import number, option, positive_int
from cbench_server.texts.chat_markup import marked

_JUDGES = {"process": "llm-judge", "memory": "memory-judge"}
# What each flag is called as an option of the judge.
_SETTINGS = {
    "judge_repeats": "repeats",
    "judge_rpm": "rpm",
    "judge_credential": "credential",
    "max_cost": "max_cost",
}
# What needs a judge to mean anything.
_OF_JUDGES = ("judge_model", "packs", "judge_option", "judge_price", "judge_unqualified")
PACK_HELP = (
    "what the judge is asked: correctness, helpfulness, mt-bench or alpaca-eval; memory-qa, "
    "strict, lenient, longmemeval, locomo or frames; or a file with prompts: .json, FastChat's "
    "judge_prompts.jsonl, AlpacaEval's alpaca_eval_clf.txt "
    "(see docs/judges.md); repeatable"
)


def add_judge_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags in a separate group."""
    group = parser.add_argument_group("a judge")
    add_judge_address(group)
    group.add_argument(
        "--judge-unqualified",
        action="store_true",
        help="go on with a judge that did not pass its controls; every figure of it is marked †",
    )
    group.add_argument(
        "--labels",
        metavar="FILE",
        dest="labels_file",
        help="verdicts of people on some of the rows (.jsonl: example_id, verdict, system, "
        "dataset), from which the true rate is estimated",
    )
    group.add_argument(
        "--errata",
        metavar="FILE",
        help="known mistakes of a dataset (.jsonl); scores are shown as published and with them",
    )
    group.add_argument(
        "--max-cost",
        metavar="USD",
        type=number,
        help="the most that the judge may cost; rows beyond it get no score from it. Needs "
        "--judge-price",
    )


def add_judge_address(group: Any) -> None:
    """Add the flags that say which judge is asked, and how."""
    group.add_argument(
        "--judge-url",
        "--judge",
        metavar="URL|local[:FILE]",
        help="an OpenAI-compatible endpoint whose model judges every response; a second one is a "
        "second rater; local is the model of `cbench model fetch`, or a GGUF file",
        **REPEATABLE,
    )
    group.add_argument(
        "--judge-model",
        metavar="MODEL",
        help="the model of the judge, one for each --judge-url; without it the run is marked as "
        "self-graded (default: --model)",
        **REPEATABLE,
    )
    group.add_argument(
        "--pack",
        "--judge-pack",
        metavar="NAME",
        dest="packs",
        help=f"{PACK_HELP} (default: correctness, or memory-qa in a memory run)",
        **REPEATABLE,
    )
    group.add_argument(
        "--judge-option",
        metavar="KEY=VALUE",
        type=option,
        help="a further key of the judge's requests, such as seed=7 or temperature=0.2 (default: "
        "temperature 0, and as many tokens as the pack needs); null takes one out",
        **REPEATABLE,
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
        metavar=METAVAR,
        type=price,
        help=f"of the judge, or one for each --judge-url: {HELP}",
        **REPEATABLE,
    )


def judge_evaluators(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the judges as references to evaluators, one for each rater and pack.

    The first has the plain names of its scores; the others add what tells them apart.
    """
    if not args.judge_url:
        given = [name for name in (*_OF_JUDGES, *_SETTINGS) if vars(args).get(name)]
        if given:
            flag = "--" + given[0].removesuffix("s").replace("_", "-")
            raise UsageError(f"{flag} needs --judge-url URL.")
        return []
    if args.max_cost is not None and not args.judge_price:
        raise UsageError("--max-cost needs --judge-price IN,OUT, to know what tokens cost.")
    packs = [_pack(text) for text in args.packs] or [{}]
    return [
        {"name": _JUDGES[args.kind], "label": label, "options": {**rater, **pack}}
        for rater, pack, label in _labelled(_raters(args), packs)
    ]


def _raters(args: argparse.Namespace) -> list[dict[str, Any]]:
    models = args.judge_model
    if len(models) > 1 and len(models) != len(args.judge_url):
        raise UsageError(
            f"there are {len(models)} --judge-model for {len(args.judge_url)} --judge-url; give "
            "one for all, or one for each."
        )
    shared: dict[str, Any] = {
        option_name: value
        for name, option_name in _SETTINGS.items()
        if (value := vars(args)[name]) is not None
    }
    if args.judge_option:
        shared["extra_body"] = {
            f"{owner}.{key}" if owner else key: value for owner, key, value in args.judge_option
        }
    return [
        {
            "base_url": url,
            "model": models[min(place, len(models) - 1)] if models else args.model,
            "self_graded": not models,
            **shared,
            **_price(args, place),
        }
        for place, url in enumerate(args.judge_url)
    ]


def _price(args: argparse.Namespace, place: int) -> dict[str, float]:
    """Return the price of a rater as options of the judge."""
    given = price_at(args.judge_price, place, len(args.judge_url), "--judge-price") or {}
    return {name.removesuffix("usd") + "price": amount for name, amount in given.items()}


def _labelled(
    raters: list[dict[str, Any]], packs: list[dict[str, Any]]
) -> list[tuple[dict[str, Any], dict[str, Any], str]]:
    labelled: list[tuple[dict[str, Any], dict[str, Any], str]] = []
    seen: set[str] = set()
    for place, rater in enumerate(raters):
        for pack in packs:
            parts = [str(pack["pack"])] if len(packs) > 1 else []
            if place:
                other = rater["model"] != raters[0]["model"]
                parts.append(str(rater["model"]) if other else f"rater-{place + 1}")
            label = "@".join(parts) if labelled else ""
            if label in seen:
                raise UsageError(f"two judges are the same: {' '.join(parts) or rater['model']}.")
            seen.add(label)
            labelled.append((rater, pack, label))
    return labelled


def _pack(text: str) -> dict[str, Any]:
    """Read a pack: its name, or a file with the name and prompts."""
    if text.endswith(".txt"):
        return {"pack": "alpaca-eval", "prompts": {"": read_text(text)}}
    if text.endswith(".jsonl"):
        return {"pack": "mt-bench", "prompts": _of_fastchat(text)}
    if not text.endswith(".json"):
        return {"pack": text}
    try:
        document = json.loads(read_text(text))
    except ValueError as error:
        raise UsageError(f"{text} is not JSON: {error}.") from None
    prompts = document.get("prompts") if isinstance(document, dict) else None
    if not isinstance(prompts, dict) or not all(isinstance(each, str) for each in prompts.values()):
        raise UsageError(
            f'{Path(text).name} should hold {{"pack": "longmemeval", "prompts": {{"": "..."}}}}, '
            "with a prompt for each type of question."
        )
    return {"pack": str(document.get("pack") or "memory-qa"), "prompts": prompts}


def _of_fastchat(text: str) -> dict[str, str]:
    """Read the prompts for grades of single answers, as MT-Bench publishes them."""
    try:
        rows = [json.loads(line) for line in read_text(text).splitlines() if line.strip()]
        return {
            row["name"]: marked(
                [("system", row["system_prompt"]), ("user", row["prompt_template"])]
            )
            for row in rows
            if row["type"] == "single"
        }
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{Path(text).name} does not hold MT-Bench's prompts, a JSON object on each line with "
            f"name, type, system_prompt and prompt_template ({type(error).__name__}: {error})."
        ) from None
