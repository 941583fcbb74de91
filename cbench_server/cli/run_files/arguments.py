"""Run files on the command line: what a file says is filled in, and flags that were given stand.

A flag replaces what the file says of the same; a list as a whole, so that `--dataset` leaves none
of the file's. Labels and options are joined by their names. A flag for all datasets, or for all
proxies, stands for each of them.
"""

import argparse
from pathlib import Path
from typing import Any

from cbench_server.cli.exits import UsageError
from cbench_server.cli.run_files.filed import Filed, options_of
from cbench_server.cli.run_files.reading import Document, keys_of, read_document, written
from cbench_server.cli.run_files.schema import DATASETS, WAYS, Key, by_flag

# Flags that go for every system, by the keys of an entry that they stand for.
_OF_ALL_SYSTEMS = {
    "credential": ("credential",),
    "model": ("model",),
    "context_window": ("context_window",),
    "proxy_price": ("price",),
    "system_tls": ("tls",),
    "system_ca": ("ca", "ca_pem", "tls"),
    "exec_mode": ("mode",),
    "http_batch": ("batch",),
    "http_token_env": ("token_env",),
    "only_systems": ("only",),
}
_OF_BRIDGES = {
    "exec_concurrency": ("exec", "concurrency"),
    "http_concurrency": ("http", "concurrency"),
    "http_timeout": ("http", "timeout"),
}


def add_file_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that name a run file."""
    group = parser.add_argument_group("a run file")
    group.add_argument(
        "-c",
        "--config",
        metavar="FILE",
        help="a run file, in TOML; flags stand over what it says (see: cbench config init)",
    )
    group.add_argument(
        "--repeat-last",
        action="store_true",
        help="run again what the last run from this store's home was asked to do",
    )
    group.add_argument(
        "--detach",
        action="store_true",
        help="leave the run to the daemon of --server and follow it later: cbench attach RUN",
    )
    parser.set_defaults(filed=None)


def fill_in(args: argparse.Namespace) -> None:
    """Read the run file of a command line, if it names one, into its flags."""
    if vars(args).get("filed") is not None:
        return
    if args.repeat_last:
        from cbench_server.cli.run_files.records import last_file

        if args.config:
            raise UsageError("--repeat-last stands for a run file; leave out --config.")
        args.config = str(last_file(args.kind))
    if args.config:
        fill(args, read_document(args.config), Path(args.config).resolve().parent)


def fill(args: argparse.Namespace, document: Document, folder: Path) -> None:
    """Put a document into the flags; its paths are below `folder`."""
    _check_kind(args, document)
    # Which flags were given; a parser by itself does not tell.
    given = args.given() if "given" in vars(args) else {}
    filed = Filed(folder)
    args.filed = filed
    for made, key in by_flag():
        home = document.get(made.name, {}) if made.name else document
        if key.name in home and (key.dest not in given or key.kind == "pairs"):
            value = _as_flag(key, home[key.name], folder)
            joined = [*value, *vars(args)[key.dest]] if key.kind == "pairs" else value
            vars(args)[key.dest] = joined
    _fill_systems(args, document, given)
    _fill_datasets(args, document, given)
    _fill_scoring(args, document, given)
    _fill_models(args, document, given)
    filed.gate = {**document.get("gate", {})}
    if "junit" in filed.gate:
        filed.gate["junit"] = str(folder / filed.gate["junit"])


def _check_kind(args: argparse.Namespace, document: Document) -> None:
    commands = {"process": "cbench run", "memory": "cbench memory run"}
    kind = document.get("kind", args.kind)
    if kind != args.kind:
        raise UsageError(
            f"{args.config}: its kind is {kind}, which is for: {commands[kind]} -c {args.config}"
        )
    for path, key in keys_of(document):
        if key.only not in ("", args.kind):
            raise UsageError(
                f"{args.config or 'the run file'}: {written(path)} is for `{commands[key.only]}` "
                "only."
            )


def _as_flag(key: Key, value: Any, folder: Path) -> Any:
    """Give a value as the flag of the same meaning has it."""
    if key.kind == "path":
        return str(folder / value)
    if key.kind == "pairs":
        return list(value.items())
    if key.dest == "packs":
        return [_pack(each, folder) for each in value]
    return value


def _pack(text: str, folder: Path) -> str:
    return str(folder / text) if text.endswith((".txt", ".json", ".jsonl")) else text


def _fill_systems(args: argparse.Namespace, document: Document, given: dict[str, Any]) -> None:
    filed: Filed = args.filed
    if "systems" not in given:
        for raw in document.get("systems", []):
            way = next(name for name in WAYS if name in raw)
            value = str(filed.folder / raw[way]) if way == "predictions" else raw[way]
            args.systems = [*(args.systems or []), (WAYS[way], value)]
            filed.systems.append(_entry(raw, given, filed.folder))
        if "name" not in given:
            args.name = [entry.get("name", "") for entry in filed.systems]
        if "only_systems" not in given:
            args.only_systems = [name for each in filed.systems for name in each.get("only", ())]
    every = [("", key, value) for key, value in document.get("options", {}).items()]
    owned = [
        (owner, key, value)
        for owner, values in document.get("system_options", {}).items()
        for key, value in values.items()
    ]
    args.option = [*every, *owned, *args.option]
    swept = document.get("sweep")
    if swept and "sweep" not in given:
        missing = {"option", "values"} - {*swept}
        if missing:
            raise UsageError(f"{args.config}: sweep needs `{min(missing)}`.")
        args.sweep = [(swept.get("system", ""), swept["option"], tuple(swept["values"]))]


def _entry(raw: dict[str, Any], given: dict[str, Any], folder: Path) -> dict[str, Any]:
    from cbench_server.cli.connect import pem

    entry = dict(raw)
    for dest, keys in _OF_ALL_SYSTEMS.items():
        if dest in given:
            for key in keys:
                entry.pop(key, None)
    for dest, (way, key) in _OF_BRIDGES.items():
        if dest in given and way in entry:
            entry.pop(key, None)
    if "ca" in entry:
        text = pem(str(folder / entry["ca"])) or b""
        entry["ca_pem"] = text.decode("ascii", "replace")
    return entry


def _fill_datasets(args: argparse.Namespace, document: Document, given: dict[str, Any]) -> None:
    filed: Filed = args.filed
    if "datasets" in given:
        return
    overridden = [key.name for key in DATASETS.keys if key.dest in given and key.dest]
    for raw in document.get("datasets", []):
        entry = {key: value for key, value in raw.items() if key not in overridden}
        if "file" in entry:
            path = str(filed.folder / entry["file"])
            text = f"{entry['name']}={path}" if "name" in entry else path
        else:
            config = f":{entry['config']}" if entry.get("config") else ""
            text = f"{entry.get('name', '')}{config}"
        args.datasets = [*args.datasets, text]
        filed.datasets.append(entry)


def _fill_scoring(args: argparse.Namespace, document: Document, given: dict[str, Any]) -> None:
    filed: Filed = args.filed
    if "evaluators" not in given and "evaluators" in document:
        refs = [
            {**_without_unset(raw), "options": options_of(raw)} for raw in document["evaluators"]
        ]
        known = {ref["name"]: ref for ref in refs}
        for owner, key, value in [*args.evaluator_options]:
            if owner in known:
                known[owner]["options"] = {**known[owner]["options"], key: value}
                args.evaluator_options = [
                    each for each in args.evaluator_options if each[:2] != (owner, key)
                ]
        filed.evaluators = refs
    if "metrics" not in given and "metrics" in document:
        filed.spec["metrics"] = [
            {**_without_unset(raw), "options": options_of(raw)} for raw in document["metrics"]
        ]
    if fields := document.get("scoring", {}).get("text_fields"):
        filed.spec["text_fields"] = fields
    for name in ("labels_upload", "errata_upload"):
        if name in document.get("judge", {}):
            filed.spec[name] = document["judge"][name]


def _without_unset(raw: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in raw.items() if key != "unset"}


def _fill_models(args: argparse.Namespace, document: Document, given: dict[str, Any]) -> None:
    filed: Filed = args.filed
    reader, judge = document.get("reader", {}), document.get("judge", {})
    if judge.get("unqualified") and not args.judge_url:
        # For judges among the evaluators.
        args.judge_unqualified, filed.spec["allow_unqualified_judges"] = False, True
    args.reader_options = [*_triples(reader), *args.reader_options]
    args.judge_option = [*_triples(judge), *args.judge_option]
    for key in ("context_window", "system_prompt"):
        if key in reader and key not in given:
            filed.reader[key] = reader[key]
    if "anchors" in reader and "anchors" not in given:
        args.anchors = reader["anchors"]
    prompt = document.get("prompt", {})
    texts = [key for key in ("plain", "file", "template") if prompt.get(key)]
    if len(texts) > 1:
        raise UsageError(f"{args.config}: prompt has {' and '.join(texts)}; give one of them.")
    if "prompt" in given or not texts:
        return
    if texts == ["template"]:
        filed.prompt["template"] = prompt["template"]
    else:
        args.prompt = "plain" if texts == ["plain"] else str(filed.folder / prompt["file"])


def _triples(raw: dict[str, Any]) -> list[tuple[str, str, Any]]:
    return [("", key, value) for key, value in options_of(raw).items()]
