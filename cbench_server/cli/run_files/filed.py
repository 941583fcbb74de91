"""What a run file says beyond the flags: settings of one system or dataset, by its place."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cbench_server.cli.run_files.schema import DATASETS

System = dict[str, Any]
# What an entry of systems calls the settings of its bridge, and what the flags do.
_BRIDGES = {
    "exec": {"mode": "exec_mode", "concurrency": "exec_concurrency"},
    "http": {
        "concurrency": "http_concurrency",
        "batch": "http_batch",
        "timeout": "http_timeout",
        "token_env": "http_token_env",
    },
}
_OF_PROXY = {
    "model": "model",
    "credential": "credential",
    "system_prompt": "system_prompt",
    "workers": "max_concurrency",
    "timeout": "timeout",
    "context_window": "context_window",
    "price": "price",
}


@dataclass
class Filed:
    """What flags cannot say, of one run file."""

    folder: Path
    systems: list[dict[str, Any]] = field(default_factory=list)
    datasets: list[dict[str, Any]] = field(default_factory=list)
    evaluators: list[dict[str, Any]] = field(default_factory=list)
    spec: dict[str, Any] = field(default_factory=dict)
    """Parts of the spec that stand in the place of those made from flags."""
    reader: dict[str, Any] = field(default_factory=dict)
    prompt: dict[str, Any] = field(default_factory=dict)
    gate: dict[str, Any] = field(default_factory=dict)


def filed_of(args: argparse.Namespace) -> Filed | None:
    """Return what the run file of a command line says; None without one."""
    found: Filed | None = vars(args).get("filed")
    return found


def entry_at(args: argparse.Namespace, place: int) -> dict[str, Any]:
    """Return the entry of a system, empty where flags named it."""
    filed = filed_of(args)
    return filed.systems[place] if filed and place < len(filed.systems) else {}


def bridge_at(args: argparse.Namespace, place: int) -> argparse.Namespace:
    """Return the flags as they are for the bridge at a place."""
    entry = entry_at(args, place)
    renamed = _BRIDGES.get(args.systems[place][0], {})
    own = {dest: entry[name] for name, dest in renamed.items() if name in entry}
    return argparse.Namespace(**{**vars(args), **own, "folder": folder_at(args, place)})


def folder_at(args: argparse.Namespace, place: int) -> Path:
    """Return where a command is run."""
    filed, entry = filed_of(args), entry_at(args, place)
    if filed is None or not entry:
        return Path.cwd()
    return (filed.folder / str(entry.get("folder", ""))).resolve()


def options_of(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of an entry, with those that are sent as null."""
    return {**entry.get("options", {}), **dict.fromkeys(entry.get("unset", ()))}


def laid_over(args: argparse.Namespace, place: int, system: System) -> System:
    """Put what the file says of one system over what the flags make of it."""
    entry = entry_at(args, place)
    if not entry:
        return system
    made = dict(system)
    home: dict[str, Any] = made
    if "proxy" in made:
        own = {name: entry[key] for key, name in _OF_PROXY.items() if key in entry}
        home = made["proxy"] = {**made["proxy"], **own}
    elif "target" in made and args.systems[place][0] == "system":
        made |= {key: entry[key] for key in ("credential", "served_name") if key in entry}
        if tls := _tls(entry):
            made["tls"] = tls
    if options := options_of(entry):
        home["options"] = options
    if "role" in entry:
        made["role"] = f"SYSTEM_ROLE_{entry['role'].upper()}"
    if "swept_option" in entry:
        made["swept_option"] = entry["swept_option"]
    return made


def _tls(entry: Mapping[str, Any]) -> dict[str, str] | None:
    given = {key: entry[key] for key in ("ca_pem", "server_name") if key in entry}
    return {"ca_pem": "", **given} if given or entry.get("tls") else None


def chosen_names(
    args: argparse.Namespace, announced: Mapping[int, Sequence[str]]
) -> dict[int, list[str]]:
    """Leave out what the entry of a launched process does not choose of its systems."""
    return {
        place: [name for name in names if name in entry_at(args, place).get("only", names)]
        or list(names)
        for place, names in announced.items()
    }


def finished(spec: dict[str, Any], args: argparse.Namespace) -> dict[str, Any]:
    """Put the file's own parts into a spec that was made from flags."""
    filed = filed_of(args)
    if filed is None:
        return spec
    spec = {**spec, **filed.spec}
    spec["evaluators"] = [*filed.evaluators, *spec["evaluators"]]
    if spec.get("reader"):
        spec["reader"] = {**spec["reader"], **filed.reader}
    if filed.prompt:
        spec["prompt"] = {**filed.prompt, **(spec.get("prompt") or {})}
    return spec


def dataset_at(
    args: argparse.Namespace, place: int
) -> tuple[str, argparse.Namespace, dict[str, str]]:
    """Return a dataset's text, the flags as they are for it, and what the daemon has of it."""
    filed = filed_of(args)
    entry = filed.datasets[place] if filed and place < len(filed.datasets) else {}
    own = {key.dest: entry[key.name] for key in DATASETS.keys if key.dest and key.name in entry}
    for pairs in ("where", "mapping"):
        if pairs in own:
            own[pairs] = [*own[pairs].items()]
    uploaded: dict[str, str] = {}
    if "upload" in entry:
        uploaded = {key: entry[key] for key in ("name", "upload", "config") if key in entry}
    return args.datasets[place], argparse.Namespace(**{**vars(args), **own}), uploaded


def uploaded_at(args: argparse.Namespace, place: int) -> dict[str, str]:
    """Return predictions that the daemon has already, as a part of a spec; empty without any."""
    entry = entry_at(args, place)
    return {"upload": entry["upload"], "name": ""} if "upload" in entry else {}
