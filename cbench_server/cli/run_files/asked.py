"""The command line as a run file: what was asked for, with this machine's commands and files."""

import argparse
from pathlib import Path
from typing import Any

from cbench_server.cli.engine_flags import resources_text
from cbench_server.cli.options import DEFAULT_MODEL
from cbench_server.cli.prices import price_at
from cbench_server.cli.run_files.filed import entry_at, filed_of, folder_at
from cbench_server.cli.run_files.plain import Remarks
from cbench_server.cli.run_files.reading import Document
from cbench_server.cli.run_files.schema import DATASETS, WAYS, by_flag

_COMMANDS = ("launch", "exec")
_USUAL = {"model": DEFAULT_MODEL, "output": "table"}


def document_asked(args: argparse.Namespace) -> tuple[Document, Remarks]:
    """Return what a command line with its run file asks for, and what could not be written."""
    remarks = Remarks()
    document: Document = {"kind": args.kind}
    for made, key in by_flag():
        value = vars(args).get(key.dest)
        if value is None or value is False or value in ("", [], (), _USUAL.get(key.dest)):
            continue
        if key.kind == "path":
            value = str(Path(value).resolve())
        elif key.kind == "pairs":
            value = dict(value)
        elif key.kind == "texts":
            value = [remarks.url(each, made.name) for each in value]
        elif key.name == "url":
            value = remarks.url(value, made.name)
        home = document.setdefault(made.name, {}) if made.name else document
        home[key.name] = value
    _add_options(document, args, remarks)
    document["systems"] = _systems(args, remarks)
    document["datasets"] = _datasets(args)
    _add_models(document, args, remarks)
    filed = filed_of(args)
    if filed is not None:
        _add_filed(document, args)
    return {name: value for name, value in document.items() if value not in ({}, [])}, remarks


def _add_options(document: Document, args: argparse.Namespace, remarks: Remarks) -> None:
    for owner, key, value in args.option:
        kept = remarks.options({key: value}, owner or "every system").get("options")
        if kept is None:
            if value is None:
                remarks.append(f"TOML cannot say the option {key} = null, which was left out.")
        elif owner:
            document.setdefault("system_options", {}).setdefault(owner, {}).update(kept)
        else:
            document.setdefault("options", {}).update(kept)
    for owner, key, values in args.sweep:
        document["sweep"] = {
            **({"system": owner} if owner else {}),
            "option": key,
            "values": [*values],
        }


def _systems(args: argparse.Namespace, remarks: Remarks) -> list[dict[str, Any]]:
    ways = {flag: way for way, flag in reversed(WAYS.items())}
    urls = [value for kind, value in args.systems or [] if kind == "proxy"]
    urls += [args.direct] if args.direct else []
    prices = iter(
        [price_at(args.proxy_price, at, len(urls), "--proxy-price") for at in range(len(urls))]
    )
    found = []
    for place, (kind, value) in enumerate(args.systems or []):
        entry = dict(entry_at(args, place))
        if "ca" in entry:
            entry = {**entry, "ca": str(Path(args.filed.folder / entry["ca"]).resolve())}
            entry.pop("ca_pem", None)
        if "upload" not in entry:
            entry[ways[kind]] = _value(kind, value, remarks)
        if place < len(args.name) and args.name[place]:
            entry["name"] = args.name[place]
        if ways[kind] in _COMMANDS:
            entry["folder"] = str(folder_at(args, place))
        usual = _of_flags(args, kind, next(prices) if kind == "proxy" else None)
        found.append({**usual, **entry})
    if args.direct:
        direct = _of_flags(args, "proxy", next(prices))
        url = remarks.url(args.direct, "direct")
        found.append({"name": "direct", "proxy": url, "role": "direct", **direct})
    return found


def _value(kind: str, value: str, remarks: Remarks) -> str:
    if kind == "predictions":
        return str(Path(value).resolve())
    return remarks.url(value, value.rpartition("@")[2]) if kind in ("proxy", "http") else value


def _of_flags(args: argparse.Namespace, kind: str, price: Any) -> dict[str, Any]:
    """Return what flags for all systems say of one of a kind."""
    known: dict[str, Any] = {}
    if kind in ("system", "proxy"):
        known["credential"] = args.credential
    if kind == "system":
        known["tls"] = bool(args.system_tls) or None
        known["ca"] = str(Path(args.system_ca).resolve()) if args.system_ca else None
    elif kind == "proxy":
        known |= {"context_window": args.context_window, "price": price}
    elif kind == "exec":
        mode = args.exec_mode if args.exec_mode != "stream" else None
        known |= {"mode": mode, "concurrency": args.exec_concurrency}
    elif kind == "http":
        known |= {
            "concurrency": args.http_concurrency,
            "batch": args.http_batch if args.http_batch != 1 else None,
            "timeout": args.http_timeout,
            "token_env": args.http_token_env,
        }
    elif kind == "launch":
        known |= {"only": [*args.only_systems], "replicas": args.replicas}
        known["resources"] = resources_text(args.resources or {})
    return {name: value for name, value in known.items() if value not in (None, "", [])}


def _datasets(args: argparse.Namespace) -> list[dict[str, Any]]:
    from cbench_server.cli.spec import registered_dataset
    from cbench_server.cli.uploads import named_file
    from cbench_server.datasets.readers.files import is_file_name

    filed = filed_of(args)
    found = []
    for place, text in enumerate(args.datasets):
        entry: dict[str, Any] = {}
        for key in DATASETS.keys:
            value = vars(args).get(key.dest) if key.dest else None
            if value:
                entry[key.name] = dict(value) if key.kind == "pairs" else value
        own = filed.datasets[place] if filed and place < len(filed.datasets) else {}
        entry |= own
        if "upload" in entry:
            pass
        elif is_file_name(text):
            name, path = named_file(text)
            entry |= {"name": name, "file": str(path.resolve())}
        else:
            named = registered_dataset(text, None)
            entry |= {key: named[key] for key in ("name", "config") if named[key]}
        found.append(entry)
    return found


def _add_models(document: Document, args: argparse.Namespace, remarks: Remarks) -> None:
    for name, triples in (("reader", args.reader_options), ("judge", args.judge_option)):
        values = {f"{owner}.{key}" if owner else key: value for owner, key, value in triples}
        if values:
            document.setdefault(name, {}).update(remarks.options(values, f"the {name}"))
    if args.anchors is not None:
        document.setdefault("reader", {})["anchors"] = args.anchors
    if args.context_window and args.reader:
        document.setdefault("reader", {})["context_window"] = args.context_window
    if args.prompt is not None:
        said: dict[str, Any] = {"plain": True} if args.prompt == "plain" else {}
        document.setdefault("prompt", {}).update(said or {"file": str(Path(args.prompt).resolve())})
    evaluators: dict[str, dict[str, Any]] = {}
    for text in args.evaluators:
        name, _, target = text.partition("@")
        evaluators[name] = {"name": name, **({"target": target} if target else {})}
    for owner, key, value in args.evaluator_options:
        if owner in evaluators:
            evaluators[owner].setdefault("options", {})[key] = value
    document["evaluators"] = [
        {**each, **remarks.options(each.pop("options", {}), each["name"])}
        for each in evaluators.values()
    ]
    document["metrics"] = [{"name": name} for name in args.metrics]


def _add_filed(document: Document, args: argparse.Namespace) -> None:
    """Add what only the run file could say."""
    filed = args.filed
    for ref in filed.evaluators:
        document["evaluators"].insert(0, {**ref, **Remarks().options(ref["options"], ref["name"])})
    document["evaluators"] = [
        {key: value for key, value in each.items() if value not in ({}, [])}
        for each in document["evaluators"]
    ]
    for ref in filed.spec.get("metrics", []):
        document["metrics"].append({"name": ref["name"], **Remarks().options(ref["options"], "")})
    if "text_fields" in filed.spec:
        document.setdefault("scoring", {})["text_fields"] = filed.spec["text_fields"]
    judge = {
        name: filed.spec[name] for name in ("labels_upload", "errata_upload") if name in filed.spec
    }
    if filed.spec.get("allow_unqualified_judges"):
        judge["unqualified"] = True
    if judge:
        document.setdefault("judge", {}).update(judge)
    if filed.reader:
        document.setdefault("reader", {}).update(filed.reader)
    if filed.prompt:
        document.setdefault("prompt", {}).update(filed.prompt)
    document["gate"] = filed.gate
