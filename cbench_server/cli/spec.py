"""The spec of a run as plain data, built from the flags of `cbench run`."""

import argparse
import re
from collections.abc import Mapping, Sequence
from typing import Any

from cbench_server.cli.exits import UsageError, did_you_mean
from cbench_server.cli.judge import judge_evaluators
from cbench_server.cli.models import prompt_of, reader_of

System = dict[str, Any]


def build_spec(
    args: argparse.Namespace,
    launched: Mapping[int, tuple[str, str]],
    predictions: Mapping[int, System],
    datasets: Sequence[Mapping[str, Any]],
    tls: Mapping[str, Any] | None,
    uploads: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Build the spec.

    `launched` has targets and logs of systems, by their place among `systems`,
    `predictions` the uploaded ones, `uploads` the files of judges that were sent.
    """
    spec: dict[str, Any] = {
        "systems": build_systems(args, launched, predictions, tls),
        "datasets": list(datasets),
        "evaluators": evaluators_of(args),
        "metrics": [{"name": name} for name in args.metrics],
        "row_timeout": args.timeout,
        "wait_timeout": args.wait,
        "max_concurrency": args.max_workers,
        "timed_rows": args.timed_rows,
        "repeats": args.repeats,
        "max_failures": args.max_failures,
        "expose_reference_fields": args.expose_references,
        "reference_fields": args.reference_fields,
        "replace_evaluators": args.only_evaluators,
        "score_field": args.score_field,
        "threshold": args.threshold,
        "tokenizer": args.tokenizer,
        "seed": args.seed,
        "labels": dict(args.labels),
        "kind": args.kind,
        "query_budget": args.budget,
        "question_types": args.question_types,
        "reuse": args.reuse,
        "matched_controls": args.controls == "matched",
        "allow_unqualified_judges": args.judge_unqualified,
        **(uploads or {}),
    }
    if reader := reader_of(args):
        spec["reader"] = reader
    if prompt := prompt_of(args):
        spec["prompt"] = prompt
    return spec


def check_systems(args: argparse.Namespace) -> None:
    """Refuse a command line without systems, or with more names than systems."""
    if not args.systems:
        is_memory = args.kind == "memory"
        proxy, example = ("", "bm25") if is_memory else ("--proxy, ", "truncate-head")
        raise UsageError(
            f"name at least one system with --system, {proxy}--builtin, --attached or --launch. "
            f"For example: --builtin {example}"
        )
    if len(args.name) > len(args.systems):
        raise UsageError(
            f"there are {len(args.name)} names for {len(args.systems)} systems; "
            f'"{args.name[len(args.systems)]}" is one too many.'
        )


def build_systems(
    args: argparse.Namespace,
    launched: Mapping[int, tuple[str, str]],
    predictions: Mapping[int, System],
    tls: Mapping[str, Any] | None,
) -> list[System]:
    """Build the references to systems, in the order of the command line."""
    from cbench_client.remote.peer import split_target

    systems = []
    for place, (kind, value) in enumerate(args.systems):
        system: System = {"name": args.name[place] if place < len(args.name) else ""}
        if kind == "proxy":
            system["proxy"] = {
                "base_url": value,
                "model": args.model,
                "credential": args.credential,
                "context_window": args.context_window,
            }
        elif kind in ("builtin", "attached"):
            system[kind] = value
        elif kind == "predictions":
            given = predictions[place]
            system |= {"predictions": given["upload"], "name": system["name"] or given["name"]}
        else:
            place_of, log = launched.get(place, (value, ""))
            target, served = split_target(place_of)
            system |= {"target": target, "served_name": served or "", "log": log}
            if kind == "system":
                system |= {"tls": tls, "credential": args.credential}
        systems.append(system)
    _add_options(systems, args)
    return systems


def _add_options(systems: Sequence[System], args: argparse.Namespace) -> None:
    aliases = [
        {system["name"], system.get("served_name", ""), value} - {""}
        for system, (_, value) in zip(systems, args.systems, strict=True)
    ]
    for owner, key, value in args.option:
        owners = [
            system
            for system, names in zip(systems, aliases, strict=True)
            if not owner or owner in names
        ]
        if not owners:
            known = sorted(set().union(*aliases))
            raise UsageError(
                f'--option {owner}.{key}: no system "{owner}" on this command line.'
                + (did_you_mean(owner, known) or f" There are: {', '.join(known)}.")
            )
        for system in owners:
            # A proxy's settings are further keys of its request body.
            home = system.get("proxy", system)
            home.setdefault("options", {})[key] = value


def evaluators_of(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Build the references to evaluators and to the judge."""
    named = build_evaluators(args.evaluators, args.evaluator_options)
    return named + judge_evaluators(args)


def build_evaluators(
    names: Sequence[str], options: Sequence[tuple[str, str, Any]]
) -> list[dict[str, Any]]:
    """Build the references to evaluators, with their options."""
    evaluators: dict[str, dict[str, Any]] = {}
    for text in names:
        name, _, target = text.partition("@")
        evaluators[name] = {"name": name, "options": {}}
        if target:
            evaluators[name]["target"] = target
    for owner, key, value in options:
        if owner not in evaluators:
            hint = did_you_mean(owner, evaluators) or f" Add --evaluator {owner}."
            raise UsageError(f'--evaluator-option {owner}.{key}: no --evaluator "{owner}".{hint}')
        evaluators[owner]["options"][key] = value
    return list(evaluators.values())


def registered_dataset(dataset: str, max_examples: int | None) -> dict[str, Any]:
    """Read `NAME[:CONFIG]` or `hf:ORG/NAME[:CONFIG]`."""
    match = re.fullmatch(r"((?:hf:)?[^:]+)(?::(.+))?", dataset)
    if match is None:
        raise UsageError(f'"{dataset}" is not a dataset; write it as NAME, NAME:CONFIG or a file.')
    return {"name": match[1], "config": match[2] or "", "max_examples": max_examples}
