"""The spec of a run as plain data, built from the flags of `cbench run`."""

import argparse
import re
from collections.abc import Mapping, Sequence
from typing import Any

from cbench_server.cli.exits import UsageError, did_you_mean
from cbench_server.cli.judge import judge_evaluators
from cbench_server.cli.likelihood import likelihood_evaluators
from cbench_server.cli.models import prompt_of, reader_of
from cbench_server.cli.prices import price_at
from cbench_server.cli.replicas import check_replicas, launched_at, served_at
from cbench_server.cli.run_files.filed import finished, laid_over
from cbench_server.cli.served import Announced, chosen
from cbench_server.cli.sweeps import wants_controls, with_sweep

System = dict[str, Any]


def build_spec(
    args: argparse.Namespace,
    launched: Mapping[int, tuple[str, str]],
    predictions: Mapping[int, System],
    datasets: Sequence[Mapping[str, Any]],
    tls: Mapping[str, Any] | None,
    uploads: Mapping[str, str] | None = None,
    announced: Announced | None = None,
) -> dict[str, Any]:
    """Build the spec.

    `launched` has targets and logs of systems, by their place among `systems`,
    `predictions` the uploaded ones, `uploads` the files of judges that were sent,
    `announced` the names that launched systems give themselves.
    """
    spec: dict[str, Any] = {
        "systems": build_systems(args, launched, predictions, tls, announced),
        "options": {key: value for owner, key, value in args.option if not owner},
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
        "budget_usd": args.budget_usd,
        "question_types": args.question_types,
        "reuse": args.reuse,
        "group_by": args.group_by,
        "matched_controls": wants_controls(args),
        "anchors": args.anchors,
        "asked_again": args.asked_again,
        "allow_unqualified_judges": args.judge_unqualified,
        **(uploads or {}),
    }
    if reader := reader_of(args):
        spec["reader"] = reader
    if prompt := prompt_of(args):
        spec["prompt"] = prompt
    return finished(spec, args)


def check_systems(args: argparse.Namespace) -> None:
    """Refuse a command line without systems, or with more names than systems."""
    if not args.systems:
        is_memory = args.kind == "memory"
        proxy, example = ("", "bm25") if is_memory else ("--proxy, ", "truncate-head")
        raise UsageError(
            f"name at least one system with --system, {proxy}--builtin, --attached or --launch. "
            f"For example: --builtin {example}; or name a run file with --config FILE."
        )
    check_replicas(args)
    if len(args.name) > len(args.systems):
        raise UsageError(
            f"there are {len(args.name)} names for {len(args.systems)} systems; "
            f'"{args.name[len(args.systems)]}" is one too many.'
        )
    if any(args.name):
        # Here, so that what is launched without a name starts before this is loaded.
        from cbench_server.runs.spec_limits import check_name

        for name in args.name:
            check_name(name)


def build_systems(
    args: argparse.Namespace,
    launched: Mapping[int, tuple[str, str]],
    predictions: Mapping[int, System],
    tls: Mapping[str, Any] | None,
    announced: Announced | None = None,
) -> list[System]:
    """Build the references to systems, in the order of the command line."""
    systems = []
    urls = [value for kind, value in args.systems if kind == "proxy"]
    if args.proxy_price and not urls:
        raise UsageError("--proxy-price needs --proxy URL.")
    # The direct arm is the last of them.
    if args.direct:
        urls.append(args.direct)
    proxies = iter([_proxy(url, place, len(urls), args) for place, url in enumerate(urls)])
    for place, (kind, value) in enumerate(args.systems):
        system: System = {"name": args.name[place] if place < len(args.name) else ""}
        if kind == "proxy":
            system["proxy"] = next(proxies)
        elif kind in ("builtin", "attached"):
            system[kind] = value
        elif kind == "predictions":
            given = predictions[place]
            system |= {"predictions": given["upload"], "name": system["name"] or given["name"]}
        else:
            place_of, log = launched.get(place, (value, ""))
            attached = place_of.removeprefix("attached:")
            if attached != place_of:
                # Its name for the daemon is that with something random behind it.
                name = system["name"] or attached.rpartition("-")[0]
                system |= {"attached": attached, "name": name, "log": log}
                systems.append(system)
                continue
            found = served_at(place_of) if kind == "system" else launched_at(place_of)
            found["name"] = system["name"] or found["name"]
            system |= {**found, "log": log}
            if kind == "system":
                system |= {"tls": tls, "credential": args.credential}
        systems.append(system)
    systems = [laid_over(args, place, system) for place, system in enumerate(systems)]
    values = [value for _, value in args.systems]
    if args.direct:
        systems.append({"name": "direct", "proxy": next(proxies), "role": "SYSTEM_ROLE_DIRECT"})
        values.append(args.direct)
    placed = chosen(systems, announced or {}, args.only_systems)
    systems = [system for _, system in placed]
    aliases = [
        {system["name"], system.get("served_name", ""), values[place]} - {""}
        for place, system in placed
    ]
    _add_options(systems, aliases, args)
    return with_sweep(systems, aliases, args.sweep)


def _proxy(url: str, place: int, count: int, args: argparse.Namespace) -> System:
    return {
        "base_url": url,
        "model": args.model,
        "credential": args.credential,
        "context_window": args.context_window,
        "price": price_at(args.proxy_price, place, count, "--proxy-price"),
    }


def _add_options(
    systems: Sequence[System], aliases: Sequence[set[str]], args: argparse.Namespace
) -> None:
    for owner, key, value in args.option:
        if not owner:
            # For every system that takes it: the daemon knows which do.
            continue
        owners = [system for system, names in zip(systems, aliases, strict=True) if owner in names]
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
    return named + likelihood_evaluators(args) + judge_evaluators(args)


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
