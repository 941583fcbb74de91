"""`cbench config check`: all that is wrong with a run file, with nothing started or called."""

import argparse
import pathlib
import re
from collections.abc import Callable, Iterator
from typing import Any

from cbench_server.cli.exits import UsageError, explain
from cbench_server.cli.run_files.components import check_components
from cbench_server.cli.run_files.lines import Path
from cbench_server.cli.run_files.reading import (
    Document,
    Mistake,
    bad_file,
    keys_of,
    of_another_kind,
    read_all,
    text_of,
)
from cbench_server.cli.run_files.schema import by_flag
from cbench_server.errors import CbenchError, InvalidInput, blaming

MakeParser = Callable[[Document], argparse.ArgumentParser]


def check_file(name: str, make: MakeParser) -> list[str]:
    """Refuse a file that no run could be started with; return what the run alone will tell."""
    text = text_of(name)
    document, mistakes = read_all(text, name)
    if "kind" not in document:
        mistakes += of_another_kind(document, "process")
    folder = pathlib.Path(name).resolve().parent
    in_components, unchecked = check_components(document)
    mistakes += [*in_components, *_missing_files(document, folder), *_wrong_values(document)]
    if not mistakes:
        mistakes = [*_as_a_whole(name, document, folder, make(document))]
    if mistakes:
        raise bad_file(name, text, mistakes)
    return unchecked


def _missing_files(document: Document, folder: pathlib.Path) -> Iterator[Mistake]:
    for path, key in keys_of(document):
        if key.kind != "path" or key.name == "junit":
            continue
        home: Any = document
        for part in path:
            home = home[part]
        if not (folder / home).exists():
            yield path, f"is wrong: there is no {home}."


def _wrong_values(document: Document) -> Iterator[Mistake]:
    """Tell of addresses, commands and sentences that cannot be read."""
    from cbench_server.cli.bridges import check_http
    from cbench_server.cli.launch import command_words
    from cbench_server.cli.local_models import is_local
    from cbench_server.cli.replicas import served_at
    from cbench_server.comparison.policies import parse_policy
    from cbench_server.models.dialling import host_of
    from cbench_server.models.endpoint import checked_host
    from cbench_server.registry import registry

    def base_url(text: str) -> None:
        if not is_local(text):
            checked_host(text)

    def target(text: str) -> None:
        told = served_at(text)
        for each in (told["target"], *told["replicas"]):
            host_of(each)

    def output(text: str) -> None:
        if text != "table":
            registry.get("reporter", text)

    checks: dict[str, Callable[[str], object]] = {
        "proxy": base_url,
        "url": base_url,
        "http": check_http,
        "launch": command_words,
        "exec": command_words,
        "target": target,
        "server": target,
        "policies": parse_policy,
    }
    if not document.get("daemon", {}).get("imports"):
        checks["format"] = output
    for path, key in keys_of(document):
        if key.name not in checks:
            continue
        value: Any = document
        for part in path:
            value = value[part]
        listed = [(path, value)] if isinstance(value, str) else _placed(path, value)
        for place, each in listed:
            try:
                checks[key.name](each)
            except Exception as error:
                yield place, f"is wrong: {_told(error)}"


def _placed(path: Path, values: list[str]) -> Iterator[tuple[Path, str]]:
    for place, each in enumerate(values):
        yield (*path, place), each


def _as_a_whole(
    name: str, document: Document, folder: pathlib.Path, parser: argparse.ArgumentParser
) -> Iterator[Mistake]:
    """Build the spec as a run would, and refuse of it what a daemon would."""
    from cbench_client._gen.cbench.v1 import bench_pb2
    from cbench_client.bench.spec import message_from_dict
    from cbench_server.cli.judge import judge_evaluators
    from cbench_server.cli.run_files.arguments import fill
    from cbench_server.cli.run_files.gates import check_gate
    from cbench_server.cli.spec import build_spec, check_systems
    from cbench_server.registry import registry
    from cbench_server.rpc.specs import spec_from_proto
    from cbench_server.runs.spec_checks import check_whole

    if not document.get("systems"):
        raise UsageError(f'{name}: names no systems; add one as [[systems]] and builtin = "NAME".')
    plain = parser.parse_args([])
    plain.config = name
    if not document.get("datasets") and plain.kind == "process":
        raise UsageError(f"{name}: names no datasets. List them with: cbench datasets")
    try:
        fill(plain, document, folder)
        check_systems(plain)
        check_gate(plain.filed.gate)
        places = dict.fromkeys(range(len(plain.systems)), ("localhost:1", ""))
        uploads: dict[int, dict[str, Any]] = {place: {"upload": "", "name": ""} for place in places}
        spec = build_spec(plain, places, uploads, _datasets(document), None)
        if not document.get("daemon", {}).keys() & {"server", "imports"}:
            check_whole(spec_from_proto(message_from_dict(bench_pb2.RunSpec(), spec)), registry)
        for judge in judge_evaluators(plain):
            options = {key: each for key, each in judge["options"].items() if key != "credential"}
            with blaming("judge"):
                registry.create_evaluator(judge["name"], {**options, "api_key": ""})
    except Exception as error:
        if not (place := _place(error.field if isinstance(error, CbenchError) else "")):
            raise UsageError(f"{name}: {_told(error).removeprefix(f'{name}: ')}") from error
        yield place, f"is wrong: {_told(error)}"


def _datasets(document: Document) -> list[dict[str, Any]]:
    """Return what names the datasets of a spec; their files are not read."""
    return [
        {"name": entry.get("name") or pathlib.Path(entry.get("file", "")).stem}
        for entry in document.get("datasets", [])
    ]


def _place(field: str) -> Path:
    """Return where in a run file stands what a field of a spec says; the top, if that is open."""
    parts = re.findall(r"[a-z_]+|\d+", field.removeprefix("spec."))
    if not parts:
        return ()
    if parts[0] == "judge":
        return ("judge",)
    for made, key in by_flag():
        if parts[0] in (key.dest, key.name):
            return (made.name, key.name) if made.name else (key.name,)
    return tuple(int(part) if part.isdecimal() else part for part in parts)


def _told(error: Exception) -> str:
    """Say an expected error in keys, where the command line would speak of flags."""
    told = str(error) if isinstance(error, InvalidInput) else (explain(error) or (0, ""))[1]
    if not told:
        raise error
    keys = {key.dest: f"{made.name}.{key.name}" for made, key in by_flag()}
    return re.sub(r"--([a-z-]+)", lambda flag: keys.get(flag[1].replace("-", "_"), flag[0]), told)
